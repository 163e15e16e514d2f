//! Reading values out of a machine's files, and keeping a note of those that make no sense.

use super::source::Source;
use crate::CpuSet;
use crate::topology::cpuset::CPUS_MAX;

/// The folder that most is in.
pub(super) const CPUS: &str = "sys/devices/system/cpu";

/// A machine's files, and what was distrusted in them.
pub(super) struct Reader<'a> {
    pub(super) source: &'a dyn Source,
    pub(super) notes: Notes,
}

impl<'a> Reader<'a> {
    pub(super) fn new(source: &'a dyn Source) -> Reader<'a> {
        Reader {
            source,
            notes: Notes::default(),
        }
    }

    /// A file's text without blanks around it; none if it is not there.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let bytes = self.source.read(path)?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// A file's number; none if it is not there, or is none.
    pub(super) fn number(&mut self, path: &str) -> Option<u64> {
        let text = self.text(path)?;
        let number = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => text.parse(),
        };
        // -1 is how the kernel says that it does not know.
        if number.is_err() && text != "-1" {
            self.notes
                .add(format!("{path} is no number: {}", shown(&text)));
        }
        number.ok()
    }

    /// As [`number`](Reader::number); zero means nothing either.
    pub(super) fn value(&mut self, path: &str) -> Option<u64> {
        self.number(path).filter(|&value| value > 0)
    }

    /// The CPUs of a list; none if it is not there. What is no list is left out, and noted.
    pub(super) fn list(&mut self, path: &str) -> Option<CpuSet> {
        self.sound_list(path).map(|(set, _)| set)
    }

    /// As [`list`](Reader::list), and whether all of it was understood.
    pub(super) fn sound_list(&mut self, path: &str) -> Option<(CpuSet, bool)> {
        let text = self.text(path)?;
        let (set, understood) = CpuSet::read_list(&text);
        if !understood {
            self.notes
                .add(format!("{path} is no list of CPUs: {}", shown(&text)));
        }
        Some((set, understood))
    }

    /// The CPUs of a list or else of a mask.
    pub(super) fn cpus(&mut self, list: &str, mask: &str) -> Option<CpuSet> {
        let set = self.list(list).filter(|set| !set.is_empty());
        set.or_else(|| {
            let text = self.text(mask)?;
            let (set, understood) = CpuSet::read_mask(&text);
            if !understood {
                self.notes
                    .add(format!("{mask} is no mask of CPUs: {}", shown(&text)));
            }
            (understood && !set.is_empty()).then_some(set)
        })
    }

    /// The numbers of a folder's entries that are called `name` and a number.
    pub(super) fn numbered(&self, folder: &str, name: &str) -> Vec<u32> {
        let names = self.source.names(folder).into_iter();
        let numbers = names.filter_map(|entry| entry.strip_prefix(name)?.parse().ok());
        let mut numbers: Vec<u32> = numbers.filter(|&number| number < CPUS_MAX).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

/// The beginning of a text that was not understood, on one line.
fn shown(text: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let start: String = text.chars().take(24).map(plain).collect();
    if start.len() < text.len() {
        format!("'{start}…'")
    } else {
        format!("'{start}'")
    }
}

/// Sentences about what was distrusted: each once, and not more than a reader would read.
#[derive(Default)]
pub(super) struct Notes {
    sentences: Vec<String>,
    more: usize,
}

impl Notes {
    const MOST: usize = 50;

    pub(super) fn add(&mut self, sentence: String) {
        if self.sentences.contains(&sentence) {
            return;
        }
        if self.sentences.len() < Notes::MOST {
            self.sentences.push(sentence);
        } else {
            self.more += 1;
        }
    }

    pub(super) fn into_sentences(mut self) -> Vec<String> {
        if self.more > 0 {
            self.sentences.push(format!("and {} more", self.more));
        }
        self.sentences
    }
}
