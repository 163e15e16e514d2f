//! Which records come after which, as rows of bits: for searches that would be long.
//!
//! A row is made when it is asked for, from those of the direct predecessors. While there are rows no
//! record's place is used again (`Jobs::forget`), so a bit means the same job in all of them.

#[derive(Default)]
pub(super) struct Rows {
    /// Of a row.
    words: usize,
    /// By the record's index.
    bits: Vec<u64>,
    has_row: Vec<bool>,
    count: usize,
}

impl Rows {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Makes room for rows of this many records. Rows that are too short are gone.
    pub(super) fn make_room(&mut self, records: usize) {
        if records > self.has_row.len() {
            let room = records.next_power_of_two().max(64);
            self.clear();
            self.words = room / 64;
            self.bits = vec![0; room * self.words];
            self.has_row = vec![false; room];
        }
    }

    pub(super) fn clear(&mut self) {
        if self.count > 0 {
            self.has_row.fill(false);
            self.count = 0;
        }
    }

    pub(super) fn has(&self, record: u32) -> bool {
        self.has_row.get(record as usize).is_some_and(|&has| has)
    }

    /// A record gets a row: an empty one for now.
    pub(super) fn begin(&mut self, record: u32) {
        let own = record as usize * self.words;
        self.bits[own..own + self.words].fill(0);
        self.has_row[record as usize] = true;
        self.count += 1;
    }

    /// Fills a record's row. All its predecessors have theirs.
    pub(super) fn fill(&mut self, record: u32, preds: impl Iterator<Item = u32>) {
        let (words, record) = (self.words, record as usize);
        let own = record * words;
        for pred in preds {
            let pred = pred as usize;
            if pred == record {
                continue;
            }
            let (low, high) = self.bits.split_at_mut(own.max(pred * words));
            let (own, theirs) = if pred < record {
                (&mut high[..words], &low[pred * words..][..words])
            } else {
                (&mut low[own..][..words], &high[..words])
            };
            own.iter_mut()
                .zip(theirs)
                .for_each(|(own, word)| *own |= word);
            own[pred / 64] |= 1 << (pred % 64);
        }
    }

    /// Whether `before` comes before the record, which has a row.
    pub(super) fn follows(&self, record: u32, before: u32) -> bool {
        let word = self.bits[record as usize * self.words + before as usize / 64];
        word >> (before % 64) & 1 == 1
    }
}
