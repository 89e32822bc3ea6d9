//! Tables that grow while a run goes on: a row is in the file as soon as it is known, so that
//! whatever kills the simulator leaves what had happened by then.
//!
//! `kernels.csv` grows in the order in which launches end, and is written again at the end in the
//! order of calls, with the launches that never ended and those by kernels. `copies.csv` is complete
//! as it grows.

use super::directory::Directory;
use super::kernels::{self, KernelRow};
use std::fs::File;
use std::io::{self, Write};

/// The table of launches.
pub(super) const KERNELS: &str = "kernels.csv";
/// The table of transfers.
pub(super) const COPIES: &str = "copies.csv";

/// Columns of `copies.csv`.
const COPY_COLUMNS: [&str; 8] = [
    "copy",
    "engine",
    "stream",
    "direction",
    "bytes",
    "start_ns",
    "duration_ns",
    "gpu",
];

/// A transfer by a copy engine.
#[derive(Clone, Debug, PartialEq)]
pub struct CopyRow {
    /// Its number, in the order in which transfers began.
    pub copy: u64,
    /// The copy engine.
    pub engine: u32,
    /// The stream.
    pub stream: u64,
    /// From where to where, such as `host to device`.
    pub direction: &'static str,
    /// Bytes.
    pub bytes: u64,
    /// When it began, in nanoseconds of simulated time.
    pub start_ns: f64,
    /// How long it took, in nanoseconds of simulated time.
    pub duration_ns: f64,
    /// The device.
    pub gpu: u32,
}

/// A table that grows.
#[derive(Debug)]
pub struct Growing {
    file: File,
}

impl Growing {
    /// A table with its head, which was not there.
    pub(super) fn begin<'name>(
        directory: &Directory,
        name: &str,
        head: impl IntoIterator<Item = &'name str>,
    ) -> io::Result<Self> {
        let file = directory.new_file(name)?;
        let mut table = Self { file };
        table.append(head)?;
        Ok(table)
    }

    /// Adds a row in one piece, so that a reader meets whole rows.
    fn append<Field: AsRef<[u8]>>(
        &mut self,
        fields: impl IntoIterator<Item = Field>,
    ) -> io::Result<()> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(fields)?;
        let bytes = writer.into_inner().map_err(|error| error.into_error())?;
        self.file.write_all(&bytes)
    }

    /// Adds a launch that has ended.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn kernel(&mut self, row: &KernelRow) -> io::Result<()> {
        self.append(kernels::fields(row))
    }

    /// Adds a transfer.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn copy(&mut self, row: &CopyRow) -> io::Result<()> {
        let fields: [String; COPY_COLUMNS.len()] = [
            row.copy.to_string(),
            row.engine.to_string(),
            row.stream.to_string(),
            row.direction.to_string(),
            row.bytes.to_string(),
            format!("{:.3}", row.start_ns),
            format!("{:.3}", row.duration_ns),
            row.gpu.to_string(),
        ];
        self.append(fields)
    }
}

impl super::RunFolder {
    /// Begins `kernels.csv`; [`write_kernels`](Self::write_kernels) replaces it at the end.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin_kernels(&self) -> Result<Growing, super::RunFolderError> {
        let begun = Growing::begin(&self.directory, KERNELS, kernels::kernel_columns());
        begun.map_err(|error| self.at(KERNELS, error))
    }

    /// Begins `copies.csv`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin_copies(&self) -> Result<Growing, super::RunFolderError> {
        let begun = Growing::begin(&self.directory, COPIES, COPY_COLUMNS);
        begun.map_err(|error| self.at(COPIES, error))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Existing, RunFolder};
    use super::*;

    #[test]
    fn rows_are_there_as_soon_as_they_are_known() {
        let path = std::env::temp_dir().join(format!("lockstep-ongoing-{}", std::process::id()));
        let folder = RunFolder::create(Some(&path), Existing::MustBeEmpty, "x").unwrap();
        let lines = |name: &str| {
            let text = std::fs::read_to_string(path.join(name)).unwrap();
            assert!(text.ends_with('\n'));
            text.lines().count()
        };
        let mut kernels = folder.begin_kernels().unwrap();
        let mut copies = folder.begin_copies().unwrap();
        assert_eq!((lines(KERNELS), lines(COPIES)), (1, 1));
        for launch in [4, 2] {
            let row = KernelRow {
                launch,
                ..KernelRow::default()
            };
            kernels.kernel(&row).unwrap();
        }
        let row = CopyRow {
            copy: 0,
            engine: 1,
            stream: 7,
            direction: "host to device",
            bytes: 64,
            start_ns: 1.5,
            duration_ns: 20.0,
            gpu: 0,
        };
        copies.copy(&row).unwrap();
        assert_eq!((lines(KERNELS), lines(COPIES)), (3, 2));
        let text = std::fs::read_to_string(path.join(COPIES)).unwrap();
        assert!(
            text.ends_with("0,1,7,host to device,64,1.500,20.000,0\n"),
            "{text}"
        );
        // The table of the end takes the place of the one that grew.
        folder.write_kernels(&[KernelRow::default()]).unwrap();
        assert_eq!(lines(KERNELS), 2);
        std::fs::remove_dir_all(path).unwrap();
    }
}
