// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! `nvpm run`: starts a program that registers GPU memory by pointer, on a machine without peer memory. A preloaded
//! library registers the memory as a dma-buf for the program.
pub mod command;
mod decision;
mod library;
mod loader;
mod search;
mod trust;
