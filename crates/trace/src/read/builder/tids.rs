//! The tasks that tids mean.

use std::collections::HashMap;

use event::Task;

/// Linux gives out no higher tids (`PID_MAX_LIMIT`). Others come from broken files only.
const MOST: u32 = 1 << 22;
const PAGE: usize = 1024;

/// From tids to tasks, a table in pages: a look-up is two loads, and a page exists only where there is a tid.
#[derive(Debug, Default)]
pub(super) struct Tids {
    pages: Vec<Option<Box<[u32; PAGE]>>>,
    others: HashMap<u32, Task>,
}

impl Tids {
    /// The task of this tid.
    #[inline]
    pub(super) fn get(&self, tid: u32) -> Option<Task> {
        if tid >= MOST {
            return self.others.get(&tid).copied();
        }
        let page = self.pages.get(tid as usize / PAGE)?.as_ref()?;
        match page[tid as usize % PAGE] {
            0 => None,
            number => Some(Task(number - 1)),
        }
    }

    /// From now on this tid means this task.
    pub(super) fn set(&mut self, tid: u32, task: Task) {
        if tid >= MOST || task.0 == u32::MAX {
            self.others.insert(tid, task);
            return;
        }
        let page = tid as usize / PAGE;
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        let page = self.pages[page].get_or_insert_with(|| Box::new([0; PAGE]));
        page[tid as usize % PAGE] = task.0 + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: any tid is found again and no other one is. Method: tids at the borders of pages and beyond
    /// Linux's limit, each looked up beside its neighbours.
    #[test]
    fn tids_are_found_again() {
        let tids = [1, 1023, 1024, 70_000, MOST - 1, MOST, u32::MAX];
        let mut table = Tids::default();
        for (number, tid) in tids.into_iter().enumerate() {
            assert_eq!(table.get(tid), None);
            table.set(tid, Task(number as u32));
        }
        for (number, tid) in tids.into_iter().enumerate() {
            assert_eq!(table.get(tid), Some(Task(number as u32)));
        }
        assert_eq!(table.get(2), None);
        assert_eq!(table.get(69_999), None);
        table.set(1024, Task(99));
        assert_eq!(table.get(1024), Some(Task(99)));
    }
}
