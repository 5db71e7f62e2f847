// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Shows the distances of GPUs and RDMA devices as a matrix: a row for each GPU, a column for each RDMA device.
use indexmap::{IndexMap, IndexSet};

use crate::facts::distances::{Distance, is_of_pair};
use crate::facts::fact::Fact;

/// The narrowest column.
const CELL: usize = 4;

pub struct Matrix {
    /// The distances by row and column.
    distances: IndexMap<String, IndexMap<String, String>>,
}

pub fn matrix(facts: &[Fact]) -> Matrix {
    let mut distances: IndexMap<String, IndexMap<String, String>> = IndexMap::new();
    for fact in facts.iter().filter(|fact| is_of_pair(fact)) {
        let (gpu, device) = fact.name.split_once(' ').unwrap_or((&fact.name, ""));
        distances.entry(gpu.to_owned()).or_default().insert(device.to_owned(), fact.value.clone());
    }
    Matrix { distances }
}

impl Matrix {
    fn columns(&self) -> IndexSet<&str> {
        self.distances.values().flat_map(|row| row.keys()).map(String::as_str).collect()
    }

    fn cells<'a>(&self, texts: impl Iterator<Item = &'a str>) -> String {
        let width = self.columns().iter().map(|column| column.chars().count()).fold(CELL, usize::max);
        texts.flat_map(|text| [" ".to_owned(), format!("{text:<width$}")]).collect()
    }

    pub fn head(&self) -> String {
        format!("      {:<14}{}  nearest", "", self.cells(self.columns().into_iter()))
    }

    /// Returns each GPU with its cells.
    pub fn rows(&self) -> Vec<(String, String)> {
        let cell = |row: &'_ IndexMap<String, String>| {
            let texts: Vec<&str> =
                self.columns().iter().map(|column| row.get(*column).map_or("", String::as_str)).collect();
            self.cells(texts.into_iter())
        };
        self.distances.iter().map(|(gpu, row)| (gpu.clone(), cell(row))).collect()
    }

    /// Returns a line for each distance that the matrix has.
    pub fn meanings(&self) -> Vec<String> {
        let is_there = |name: &str| self.distances.values().flat_map(|row| row.values()).any(|one| one == name);
        let there = Distance::ALL.into_iter().filter(|distance| is_there(distance.name()));
        there.map(|distance| format!("      {:<4}  {}", distance.name(), distance.meaning())).collect()
    }
}
