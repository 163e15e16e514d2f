//! Conway's game of life on a torus.

use rayon::prelude::*;

use crate::Step;
use crate::numbers::number;

const SIDE: usize = 512;

/// A step is eight generations.
pub(crate) fn program() -> Step {
    let mut cells: Vec<bool> = (0..(SIDE * SIDE) as u64)
        .map(|n| number(n) % 3 == 0)
        .collect();
    Box::new(move || {
        for _ in 0..8 {
            cells = next(&cells);
        }
        cells.iter().fold(0_u64, |digest, &cell| {
            digest.rotate_left(3) ^ u64::from(cell)
        })
    })
}

fn next(cells: &[bool]) -> Vec<bool> {
    let mut new = vec![false; cells.len()];
    new.par_chunks_mut(SIDE)
        .enumerate()
        .for_each(|(row, line)| {
            let rows = [(row + SIDE - 1) % SIDE, row, (row + 1) % SIDE];
            for (column, cell) in line.iter_mut().enumerate() {
                let columns = [(column + SIDE - 1) % SIDE, column, (column + 1) % SIDE];
                let around = rows
                    .iter()
                    .flat_map(|row| columns.map(|column| cells[row * SIDE + column]));
                let alive = around.filter(|&alive| alive).count();
                let was = cells[row * SIDE + column];
                *cell = alive == 3 || was && alive == 4;
            }
        });
    new
}
