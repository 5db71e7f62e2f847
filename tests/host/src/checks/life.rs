// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The life of a region, in every order of events.

mod answers;
mod any_order;
mod contract;
mod neighbours;
mod tokens;
mod walk;
