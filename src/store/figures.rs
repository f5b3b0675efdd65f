//! The table `devices`: the figures of each device, which must be those of its allocations.

use rusqlite::{Connection, params_from_iter, types::Value};

use crate::error::Result;
use crate::lifetimes::Lifetimes;
use crate::store::{Store, damaged, inconsistent};

/// The row of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Figures {
    /// All columns but the last, in their order.
    numbers: [i64; 12],
    warnings: String,
}

impl Figures {
    /// The rows of all devices.
    pub(crate) fn of(devices: &[Lifetimes]) -> Vec<Self> {
        let mut first = 0_i64;
        let row = |one: &Lifetimes| {
            let allocations = one.allocations.len() as i64;
            let numbers = [
                one.device.into(),
                first,
                one.totals.len() as i64,
                allocations,
                one.initial_bytes as i64,
                one.peak_bytes as i64,
                one.peak_event,
                one.final_bytes() as i64,
                one.reserved_initial_bytes as i64,
                one.reserved_peak_bytes as i64,
                one.oom_events.len() as i64,
                one.check.reconciles().into(),
            ];
            first += allocations;
            Self { numbers, warnings: one.check.sentences().join("\n") }
        };
        let mut rows: Vec<Self> = devices.iter().map(row).collect();
        rows.sort_unstable_by_key(|row| row.numbers[0]);
        rows
    }
}

/// Writes the rows.
pub(super) fn write(db: &Connection, devices: &[Lifetimes]) -> rusqlite::Result<()> {
    let mut add = db.prepare("insert into devices values (?,?,?,?,?,?,?,?,?,?,?,?,?)")?;
    for Figures { numbers, warnings } in Figures::of(devices) {
        let numbers = numbers.into_iter().map(Value::Integer);
        add.execute(params_from_iter(numbers.chain([Value::Text(warnings)])))?;
    }
    Ok(())
}

impl Store {
    /// Refuses a database with other figures than those of the allocations.
    pub(crate) fn check_figures(&self, expected: &[Figures]) -> Result<()> {
        let read = || {
            let db = self.lock();
            self.limits.reader(&db)?.all("select * from devices order by device", [], |row| {
                let mut numbers = [0; 12];
                for (column, number) in numbers.iter_mut().enumerate() {
                    *number = row.get(column)?;
                }
                Ok(Figures { numbers, warnings: row.get(12)? })
            })
        };
        match read().map_err(|error| damaged(&error))? {
            found if found == expected => Ok(()),
            _ => Err(damaged(&inconsistent("its figures are not those of the allocations"))),
        }
    }
}
