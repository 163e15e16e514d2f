//! Tests of whole files: formats, packings, errors.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use proptest::prelude::*;

use super::{Format, ReadError, read};
use crate::{Loss, Recording};

/// A file of the test data.
pub(super) fn file(name: &str) -> Vec<u8> {
    let path = format!(
        "{}/../../testdata/traces/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The same, unpacked if it is packed.
pub(super) fn text(name: &str) -> Vec<u8> {
    let bytes = file(name);
    if !name.ends_with(".gz") {
        return bytes;
    }
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&bytes[..])
        .read_to_end(&mut text)
        .unwrap();
    text
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn read_bytes(bytes: &[u8]) -> Result<Recording, ReadError> {
    read(bytes, "it")
}

fn fails(bytes: &[u8]) -> String {
    let error = read_bytes(bytes).expect_err("must be refused").to_string();
    assert!(
        error.starts_with("it: ") && !error.contains('\n'),
        "{error}"
    );
    error
}

/// A small trace of each kind of event, as the kernel prints it.
const SMALL: &str = "\
# tracer: nop
#
# entries-in-buffer/entries-written: 8/9   #P:2
#
#           TASK-PID       TGID    CPU#  |||||  TIMESTAMP  FUNCTION
          <idle>-0       (-------) [000] d..2.     1.000001: sched_switch: prev_comm=swapper/0 prev_pid=0 \
prev_prio=120 prev_state=R ==> next_comm=main next_pid=11 next_prio=110
            main-11      (     10) [000] .....     1.000002: tracing_mark_write: B|10|frame 1
            main-11 ( 10) [000] d..2.  1.000003: sched_waking: comm=worker pid=12 prio=120 target_cpu=001
            main-11      (     10) [000] .....     1.000004: sys_futex(uaddr: 0x7f07, op: 0x80, val: 2)
CPU:1 [LOST 3 EVENTS]
          <idle>-0       (-------) [001] d..2.     1.000005: cpu_idle: state=4294967295 cpu_id=1
            main-11      (     10) [000] .....     1.000006: bprint: f: a text
of two lines
            main-11      (     10) [000] .....     1.000007: tracing_mark_write: C|10|load|5
            main-11      (     10) [000] .....     1.000008: tracing_mark_write: E
";

/// The same in perf's form, for the events that perf has.
const SMALL_PERF: &str = "         swapper     0 [000]     1.000001: sched:sched_switch: prev_comm=swapper/0 \
prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=main next_pid=11 next_prio=110
            main    11 [000]     1.000003: sched:sched_waking: comm=worker pid=12 prio=120 target_cpu=001
        ffffffff8107 try_to_wake_up ([kernel.kallsyms])

             :-1    -1 [000]     1.000004: sched:sched_stat_runtime: comm=main pid=11 runtime=57 [ns]
";

/// The same in trace-cmd's form.
const SMALL_TRACE_CMD: &str = "cpus=2
CPU 1 is empty
          <idle>-0     [000]     1.000001: sched_switch:         swapper/0:0 [120] R ==> main:11 [110]
            main-11    [000]     1.000003: sched_wakeup:         worker:12 [120] success=1 CPU:001
            main-11    [000]     1.000004: print:                tracing_mark_write: B|10|frame
";

fn page() -> String {
    format!(
        "<!DOCTYPE html>\n<html><script>var a = 1;</script>\n<body>\n\
         <script class=\"trace-data\" type=\"application/text\">\n{SMALL}</script>\n\
         <script class=\"trace-data\" type=\"application/text\">\nPROCESS DUMP\n\
         USER           PID  PPID VSIZE  RSS   WCHAN              PC  NAME\n\
         u0_a1        10    1     10632  784   ffffffff 00000000 S com.app:remote x\n\
         USER           PID   TID CMD\nu0_a1           10    13 quiet thread\n</script>\n\
         <script class=\"trace-data\" type=\"application/text\">\nCGROUP DUMP\nx\n</script>\n</body></html>\n"
    )
}

/// Goal: the tag of a block in the viewer's own code is no block, and a page whose scripts are damaged is
/// read all the same. Method: the page with such code in front, as every page of systrace has it, and with
/// that code's end cut off.
#[test]
fn the_viewers_code_is_no_trace() {
    let with = |code: &str| page().replace("<script>var a = 1;</script>", code);
    let code = "<script>html = '<script class=\"trace-data\" type=\"application\\/text\">\\n' + x \
                + '<\\/script>';</script>";
    let plain = read_bytes(page().as_bytes()).unwrap();
    let found = read_bytes(with(code).as_bytes()).unwrap();
    assert_eq!(found.losses, plain.losses);
    assert_eq!(found.kernel, plain.kernel);
    let cut = with("<script>var a")
        .replace("</script>", "")
        .replace("class=", "x class=");
    assert_eq!(read_bytes(cut.as_bytes()).unwrap().kernel.len(), 5);
}

/// Goal: the bytes of a file tell its format. Method: a file of each format, plain and in gzip, and their
/// words.
#[test]
fn formats() {
    let page = page();
    for (text, format, events) in [
        (SMALL, Format::Ftrace, 5),
        (SMALL_PERF, Format::PerfScript, 2),
        (SMALL_TRACE_CMD, Format::TraceCmd, 2),
        (&page, Format::Systrace, 5),
    ] {
        for bytes in [
            text.as_bytes().to_vec(),
            gzip(text.as_bytes()),
            gzip(&gzip(text.as_bytes())),
        ] {
            let found = read_bytes(&bytes).unwrap();
            assert_eq!(found.origin.format, format.word());
            assert_eq!(found.kernel.len(), events, "{format:?}");
        }
    }
    let words: std::collections::BTreeSet<_> =
        Format::ALL.iter().map(|format| format.word()).collect();
    assert_eq!(words.len(), Format::ALL.len());
}

/// Goal: atrace's greeting, plain or with a zlib stream behind it, is skipped, and bytes behind the stream
/// are counted. Method: greetings in front of both.
#[test]
fn atrace() {
    let plain = read_bytes(SMALL.as_bytes()).unwrap();
    for greeting in [
        "TRACE:\n",
        "capturing trace... done\nTRACE:\n",
        "capturing trace... done\r\nTRACE:\r\n",
    ] {
        let text = [greeting.as_bytes(), SMALL.as_bytes()].concat();
        assert_eq!(read_bytes(&text).unwrap(), plain);
        let packed = [greeting.as_bytes(), &zlib(SMALL.as_bytes()), b"\r\n"].concat();
        assert_eq!(read_bytes(&packed).unwrap(), plain);
        let more = [&packed[..], b"rest"].concat();
        assert_eq!(read_bytes(&more).unwrap().losses.get(Loss::Malformed), 1);
    }
}

/// Goal: a page gives its trace and the names in its lists; a block that is not read is counted. Method: a
/// page with all kinds of blocks.
#[test]
fn pages() {
    let found = read_bytes(page().as_bytes()).unwrap();
    let plain = read_bytes(SMALL.as_bytes()).unwrap();
    assert_eq!((&found.kernel, &found.marks), (&plain.kernel, &plain.marks));
    assert_eq!(found.processes[0].name, "com.app:remote x");
    let quiet = found
        .threads
        .iter()
        .find(|thread| thread.tid == Some(13))
        .unwrap();
    assert_eq!(
        (quiet.name.as_str(), quiet.process),
        ("quiet thread", Some(0))
    );
    assert_eq!(
        found.losses.get(Loss::Unsupported),
        plain.losses.get(Loss::Unsupported) + 1
    );
    assert!(fails(b"<!DOCTYPE html><html>nothing</html>").contains("without a trace"));
}

/// Goal: the oldest pages, with the trace as a JavaScript string, are read as the text in it. Method: the
/// text of such a page (from the test data) put back into one, by both quotes.
#[test]
fn old_pages() {
    let text = text("catapult-android41-dualcore.systrace.txt.gz");
    let text = String::from_utf8(text).unwrap();
    let mut plain = read_bytes(text.as_bytes()).unwrap();
    plain.origin.format = "systrace".to_owned();
    for quote in ['"', '\''] {
        let escaped = text
            .replace('\\', "\\\\")
            .replace(quote, &format!("\\{quote}"));
        let escaped = escaped
            .replace('/', "\\/")
            .replace('\n', "\\n\\\n")
            .replace('=', "\\u003d");
        let page = format!(
            "<!DOCTYPE HTML>\n<html><script>x</script><script>\n  var linuxPerfData = {quote}\\\n\
             {escaped}{quote};\n</script></html>"
        );
        assert_eq!(read_bytes(page.as_bytes()).unwrap(), plain);
    }
}

/// Goal: a file that is not read is refused in one line that names its format and the remedy. Method: the
/// first bytes of each such format; the command for `trace.dat` to the letter, for odd names, too.
#[test]
fn refusals() {
    for (bytes, words) in [
        (&b""[..], "is empty"),
        (b"\n\n\n", "no trace"),
        (b"hello\nworld\n", "begins with \"hello\\nworld\\n\""),
        (b"# Heading\n\ntext\n", "no trace"),
        (b"\x00\x01\x02", "no trace"),
        (b"PK\x03\x04", "zip"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"\xfd7zXZ\0", "xz"),
        (b"BZh9", "bzip2"),
        (b"PERFILE2", "perf script --ns -i it > it.txt"),
        (
            b"\x17\x08\x44tracing6\0",
            "trace-cmd report -l -N -t -i it > it.txt",
        ),
        (&gzip(b"")[..15], "ends before any data"),
        (&gzip(&gzip(&gzip(&gzip(&gzip(b"x"))))), "packed too often"),
    ] {
        let error = fails(bytes);
        assert!(error.contains(words), "{error}");
    }
    let dat = b"\x17\x08\x44tracing6\0";
    let error = read(&dat[..], "my trace's.dat").unwrap_err();
    let command = "trace-cmd report -l -N -t -i 'my trace'\\''s.dat' > 'my trace'\\''s.dat.txt'";
    assert!(error.remedy().ends_with(command), "{error}");
}

/// Goal: trace-cmd's binary files of the test data are refused with the commands that convert them to text.
/// Method: both files, packed as they are.
#[test]
fn trace_dat() {
    for name in ["lisa-juno-rtapp.trace.dat", "trappy-hmp8-a.trace.dat"] {
        let packed = format!("{name}.gz");
        let error = read(&file(&packed)[..], &packed).unwrap_err().to_string();
        let command = format!(
            "gzip -dc < {packed} > {name} && trace-cmd report -l -N -t -i {name} > {name}.txt"
        );
        assert!(error.ends_with(&command), "{error}");
    }
}

/// Goal: a small file that would fill the memory is refused. Method: as many lines of blanks as shrink to a
/// thousandth; as many again that are within the bound.
#[test]
fn bombs() {
    let mut lines = SMALL.as_bytes().to_vec();
    lines.resize(32 << 20, b'\n');
    assert!(fails(&gzip(&lines)).contains("256 times"));
    lines.truncate(20 << 20);
    assert_eq!(read_bytes(&gzip(&lines)).unwrap().kernel.len(), 5);
}

/// Goal: packed data that is damaged is refused, with the place; several packed pieces in a row are one file.
/// Method: a byte in the middle changed; two files put together.
#[test]
fn damaged_and_joined() {
    let (first, second) = SMALL.split_at(SMALL.find("CPU:1").unwrap());
    let joined = [gzip(first.as_bytes()), gzip(second.as_bytes())].concat();
    assert_eq!(
        read_bytes(&joined).unwrap(),
        read_bytes(SMALL.as_bytes()).unwrap()
    );
    let mut damaged = gzip(SMALL.as_bytes());
    let last = damaged.len() - 6;
    damaged[last] ^= 0xff;
    let error = fails(&damaged);
    assert!(
        error.contains("byte ") && error.contains("damaged"),
        "{error}"
    );
}

/// Goal: the error of an unreadable file has the system's reason. Method: a source that fails.
#[test]
fn unreadable() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is gone"))
        }
    }
    let error = read(Broken, "it").unwrap_err().to_string();
    assert_eq!(error, "it: it cannot be read: the disk is gone");
}

/// The number of things in a recording that are accounted for: those that are read, and those that are
/// counted as lost.
fn accounted(found: &Recording) -> u64 {
    let kept = found.kernel.len() + found.marks.len();
    let values: usize = found
        .counters
        .iter()
        .map(|counter| counter.values.len())
        .sum();
    let lost = |loss| found.losses.get(loss);
    (kept + values) as u64 + lost(Loss::OtherEvents) + lost(Loss::BadFields) + lost(Loss::Malformed)
}

/// Goal: a file that stops anywhere is read up to there, and the cut-off part is counted, byte for byte; the
/// result is that of its whole lines. Method: a small file of each text format, cut at every byte.
#[test]
fn cut_anywhere() {
    for text in [SMALL, SMALL_PERF, SMALL_TRACE_CMD] {
        let mut whole = 0;
        for length in 0..text.len() {
            let (bytes, _) = text.as_bytes().split_at(length);
            let lines = bytes
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |end| end + 1);
            let Ok(found) = read_bytes(bytes) else {
                assert!(
                    accounted(&read_bytes(text.as_bytes()).unwrap()) > 0 && whole == 0,
                    "{length}"
                );
                continue;
            };
            assert_eq!(
                found.losses.get(Loss::Truncated),
                (length - lines) as u64,
                "{length}"
            );
            assert!(accounted(&found) >= whole, "{length}");
            whole = accounted(&found);
            if let Ok(mut same) = read_bytes(&bytes[..lines]) {
                same.losses.add(Loss::Truncated, (length - lines) as u64);
                assert_eq!(found, same, "{length}");
            }
        }
        assert_eq!(accounted(&read_bytes(text.as_bytes()).unwrap()), whole + 1);
    }
}

/// Goal: a container that stops anywhere gives the contents of its whole lines, or an error, and the cut is
/// counted. Method: pages of both ages, gzip, atrace's zlib and Chrome's JSON around a kernel's text, cut at
/// every byte.
#[test]
fn containers_cut_anywhere() {
    let page = page();
    let data_ends = page.find("</script>\n<script class").unwrap();
    let packed = [
        &gzip(SMALL.as_bytes())[..],
        &[b"TRACE:\n", &zlib(SMALL.as_bytes())[..]].concat(),
    ];
    let all = read_bytes(SMALL.as_bytes()).unwrap();
    let lines = SMALL.replace('\n', "\\n\\\n");
    let old = format!("<html><script>var linuxPerfData = \"\\\n{lines}\";\n</script></html>\n");
    let json = serde_json::json!({ "systemTraceEvents": SMALL, "traceEvents": [] }).to_string();
    for whole in [&old, &json] {
        let kernel = read_bytes(whole.as_bytes()).unwrap().kernel;
        assert_eq!(kernel.len(), all.kernel.len());
        for length in 0..whole.len() {
            if let Ok(cut) = read_bytes(&whole.as_bytes()[..length]) {
                assert!(cut.kernel.len() <= kernel.len(), "{length}");
                let is_counted = cut.losses.get(Loss::Truncated) > 0;
                assert!(is_counted || cut.kernel == kernel, "{length}");
            }
        }
    }
    for bytes in [page.as_bytes(), packed[0], packed[1]] {
        for length in 0..bytes.len() {
            let Ok(found) = read_bytes(&bytes[..length]) else {
                continue;
            };
            assert!(found.kernel.len() <= all.kernel.len());
            let is_counted = found.losses.get(Loss::Truncated) > 0;
            let is_behind = bytes == page.as_bytes() && length >= data_ends;
            assert!(
                is_counted || is_behind || accounted(&found) == accounted(&all),
                "{length}"
            );
        }
    }
}

proptest! {
    /// Goal: reading ends without a panic for any bytes, and events are in order. Method: the small files
    /// with bytes changed, taken out and put in, plain and packed after that.
    #[test]
    fn noise_does_not_panic(
        which in 0..4_usize,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3_u8), 1..12),
        packing in 0..3_u8,
    ) {
        let page = page();
        let mut bytes = [SMALL, SMALL_PERF, SMALL_TRACE_CMD, &page][which].as_bytes().to_vec();
        for (place, byte, change) in changes {
            let place = place.index(bytes.len());
            match change {
                0 => bytes[place] = byte,
                1 => bytes.insert(place, byte),
                _ => drop(bytes.remove(place)),
            }
        }
        let bytes = match packing {
            0 => bytes,
            1 => gzip(&bytes),
            _ => [b"TRACE:\n", &zlib(&bytes)[..]].concat(),
        };
        if let Ok(found) = read_bytes(&bytes) {
            prop_assert!(found.kernel.is_sorted_by_key(|event| event.time));
            prop_assert!(found.marks.is_sorted_by_key(|mark| mark.time));
            let tasks = found.threads.len();
            prop_assert!(found.marks.iter().all(|mark| mark.on.index() < tasks));
        }
    }

    /// Goal: the same for bytes that were never a trace, behind every format's first ones. Method: random
    /// bytes after each magic.
    #[test]
    fn anything_does_not_panic(
        magic in prop::sample::select(vec![
            &b""[..], b"# tracer: nop\n", b"cpus=2\n", b"<html>", b"\x1f\x8b\x08", b"\x78\x9c", b"TRACE:\n",
            b"<!DOCTYPE html><script>var linuxPerfData = \"", b"<html><script class=\"trace-data\">",
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let bytes = [magic, &rest].concat();
        if let Err(error) = read_bytes(&bytes) {
            prop_assert!(error.to_string().starts_with("it: "));
        }
    }
}
