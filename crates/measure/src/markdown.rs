//! Documents that are written from measurements: tables, dates, boot flags.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::Machine;

/// The boot flags that matter, as code.
pub fn boot_flags(machine: &Machine) -> String {
    let flags = machine.boot_flags.iter().map(|flag| format!("`{flag}`"));
    match flags.collect::<Vec<_>>().as_slice() {
        [] => "none".to_owned(),
        flags => flags.join(" "),
    }
}

/// Adds a table to a document. The content of a cell cannot break it.
pub fn table<const N: usize>(out: &mut String, header: &[&str; N], rows: &[[String; N]]) {
    let line = |cells: &[String]| {
        let cells = cells.iter().map(|cell| cell.replace('|', "\\|"));
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    out.push_str(&line(&header.map(str::to_owned)));
    out.push_str(&line(&header.map(|_| "---".to_owned())));
    for row in rows {
        out.push_str(&line(row));
    }
}

/// Today, in the calendar of UTC.
pub fn date() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let days = now.map_or(0, |now| now.as_secs() / 86_400);
    let (year, month, day) = civil(days);
    format!("{year}-{month:02}-{day:02}")
}

/// Year, month and day of a day after 1 January 1970 (H. Hinnant, "chrono-compatible low-level date
/// algorithms").
fn civil(days: u64) -> (u64, u64, u64) {
    // Years begin in March, eras of 400 years in the year 0.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: days become dates. Method: the first, both sides of a leap day, a century, a recent one.
    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(
            (civil(11_015), civil(11_016), civil(11_017)),
            ((2000, 2, 28), (2000, 2, 29), (2000, 3, 1))
        );
        assert_eq!(civil(20_778), (2026, 11, 21));
    }

    /// Goal: a cell cannot break its table. Method: one with a bar.
    #[test]
    fn cells_do_not_break_tables() {
        let mut out = String::new();
        table(&mut out, &["a", "b"], &[["1|2".into(), "3".into()]]);
        assert_eq!(out, "| a | b |\n| --- | --- |\n| 1\\|2 | 3 |\n");
    }
}
