//! Pages of memory on the disk: only those that changed since the last checkpoint are written.
//!
//! Pages are added to the end of a file and named by their number in it. When most of the file is out of date, a
//! second one takes its place.

use super::CheckpointError;
use lockstep_gpu::Contents;
use lockstep_gpu::memory::PAGE;
use lockstep_run_folder::RunFolder;
use lockstep_run_folder::checkpoint::PAGES;
use lockstep_stats::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Pages out of date that are not worth a new file.
const SPARE: u64 = (64 << 20) / PAGE;

/// A page as a checkpoint knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedPage {
    /// Its address.
    pub address: u64,
    /// Its number in the file.
    pub index: u64,
    /// The digest of what it holds.
    pub digest: Digest,
    /// Whether somebody is known to have written it, so that digests cover it.
    pub marked: bool,
}

/// Which file pages are in, and how many it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Its number among [`PAGES`].
    pub file: u8,
    /// Pages in it.
    pub pages: u64,
}

impl Extent {
    /// The name of the file.
    pub(super) fn name(self) -> &'static str {
        PAGES[usize::from(self.file) % PAGES.len()]
    }
}

/// Looks whether the pages of a checkpoint in a folder are as they were written.
///
/// # Errors
/// One is not.
pub fn verify(folder: &Path, extent: Extent, pages: &[SavedPage]) -> Result<(), CheckpointError> {
    let path = folder.join(extent.name());
    let file = File::open(&path).map_err(CheckpointError::system(&path))?;
    let mut bytes = vec![0; PAGE as usize];
    pages
        .iter()
        .try_for_each(|page| read_page(&path, &file, page, &mut bytes))
}

/// The pages of a run.
pub struct PageStore {
    folder: Arc<RunFolder>,
    file: File,
    extent: Extent,
    /// Number and digest of the last form of each page, by address.
    stored: BTreeMap<u64, (u64, Digest)>,
    /// A file that goes once no state needs it.
    outdated: Option<&'static str>,
}

impl PageStore {
    /// With nothing in it.
    pub fn new(folder: &Arc<RunFolder>) -> io::Result<Self> {
        Ok(Self {
            file: folder.new_checkpoint_file(PAGES[0])?,
            folder: folder.clone(),
            extent: Extent::default(),
            stored: BTreeMap::new(),
            outdated: None,
        })
    }

    /// With the pages of a checkpoint, if they are as they were written.
    ///
    /// # Errors
    /// They are not.
    pub fn go_on(
        folder: &Arc<RunFolder>,
        extent: Extent,
        pages: &[SavedPage],
    ) -> Result<Self, CheckpointError> {
        verify(folder.path(), extent, pages)?;
        let path = folder.file(extent.name());
        let open = || -> io::Result<File> {
            let mut file = folder.checkpoint_file(extent.name())?;
            file.set_len(extent.pages * PAGE)?;
            file.seek(SeekFrom::Start(extent.pages * PAGE))?;
            Ok(file)
        };
        let file = open().map_err(CheckpointError::system(&path))?;
        let stored = pages
            .iter()
            .map(|page| (page.address, (page.index, page.digest)));
        Ok(Self {
            folder: folder.clone(),
            file,
            extent,
            stored: stored.collect(),
            outdated: None,
        })
    }

    /// Where the pages are.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// What a page of a checkpoint holds.
    ///
    /// # Errors
    /// It is not what was written.
    pub fn read(&self, page: &SavedPage, bytes: &mut [u8]) -> Result<(), CheckpointError> {
        let path = self.folder.file(self.extent.name());
        read_page(&path, &self.file, page, bytes)
    }

    /// Writes those of the pages that are not there already, and brings them to the disk.
    pub fn keep(&mut self, contents: &Contents, pages: &mut [SavedPage]) -> io::Result<()> {
        if self.extent.pages > 2 * pages.len() as u64 + SPARE {
            let other = (usize::from(self.extent.file) + 1) % PAGES.len();
            self.file = self.folder.new_checkpoint_file(PAGES[other])?;
            self.outdated = Some(self.extent.name());
            self.extent = Extent {
                file: other as u8,
                pages: 0,
            };
            self.stored.clear();
        }
        let mut stored = BTreeMap::new();
        let mut bytes = vec![0; PAGE as usize];
        let mut writer = BufWriter::with_capacity(1 << 20, &self.file);
        for page in pages {
            page.index = match self.stored.get(&page.address) {
                Some((index, digest)) if *digest == page.digest => *index,
                _ => {
                    contents.read(page.address, &mut bytes);
                    writer.write_all(&bytes)?;
                    self.extent.pages += 1;
                    self.extent.pages - 1
                }
            };
            stored.insert(page.address, (page.index, page.digest));
        }
        writer.flush()?;
        drop(writer);
        self.file.sync_data()?;
        self.stored = stored;
        Ok(())
    }

    /// A state that needs only this file is on the disk.
    pub fn settled(&mut self) -> io::Result<()> {
        match self.outdated.take() {
            Some(name) => self.folder.remove_checkpoint_file(name),
            None => Ok(()),
        }
    }
}

pub(super) fn read_page(
    path: &Path,
    file: &File,
    page: &SavedPage,
    bytes: &mut [u8],
) -> Result<(), CheckpointError> {
    let place = page.index.saturating_mul(PAGE);
    let refused = |reason: String| {
        let place = format!("byte {place} (the page of address {:#x})", page.address);
        CheckpointError::refused(path, place, reason)
    };
    match file.read_exact_at(bytes, place) {
        Ok(()) if Digest::of_page(bytes) == page.digest => Ok(()),
        Ok(()) => Err(refused(
            "its checksum is not that of the checkpoint: the file was changed, or is of another run".into(),
        )),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(refused("it is past the end: the file was cut".into()))
        }
        Err(error) => Err(refused(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::place::Place;
    use super::*;
    use lockstep_run_folder::Existing;

    const BASE: u64 = 0x10_0000;

    fn all(contents: &Contents) -> Vec<SavedPage> {
        let mut pages = Vec::new();
        contents.each_page(|address, bytes| {
            pages.push(SavedPage {
                address,
                index: 0,
                digest: Digest::of_page(bytes),
                marked: true,
            });
        });
        pages
    }

    fn folder(place: &Place) -> Arc<RunFolder> {
        let made = RunFolder::create(Some(&place.file("run")), Existing::MustBeEmpty, "x");
        Arc::new(made.unwrap())
    }

    #[test]
    fn only_pages_that_changed_are_written() {
        let place = Place::new("pages");
        let folder = folder(&place);
        let contents = Contents::anonymous(BASE, 64 * PAGE).unwrap();
        for page in 0..20 {
            contents.write(BASE + page * PAGE, &[page as u8 + 1]);
        }
        let mut store = PageStore::new(&folder).unwrap();
        store.keep(&contents, &mut all(&contents)).unwrap();
        assert_eq!(store.extent().pages, 20);
        contents.write(BASE + 3 * PAGE, &[99]);
        contents.write(BASE + 40 * PAGE, &[7]);
        let mut pages = all(&contents);
        store.keep(&contents, &mut pages).unwrap();
        assert_eq!(store.extent().pages, 22);
        // Whoever goes on reads the same and writes what changes then.
        let extent = store.extent();
        let mut store = PageStore::go_on(&folder, extent, &pages).unwrap();
        let mut bytes = vec![0; PAGE as usize];
        store.read(&pages[3], &mut bytes).unwrap();
        assert_eq!(bytes[0], 99);
        store.keep(&contents, &mut pages).unwrap();
        assert_eq!(store.extent(), extent);
    }

    #[test]
    fn a_page_that_was_cut_or_changed_is_named() {
        let place = Place::new("torn-pages");
        let folder = folder(&place);
        let contents = Contents::anonymous(BASE, 64 * PAGE).unwrap();
        contents.write(BASE, &[1; 3 * PAGE as usize]);
        let mut store = PageStore::new(&folder).unwrap();
        let mut pages = all(&contents);
        store.keep(&contents, &mut pages).unwrap();
        let extent = store.extent();
        let path = folder.file(PAGES[0]);
        let mut bytes = std::fs::read(&path).unwrap();
        let refusal = || {
            let opened = PageStore::go_on(&folder, extent, &pages);
            opened.err().unwrap().to_string()
        };
        bytes[PAGE as usize + 17] ^= 4;
        std::fs::write(&path, &bytes).unwrap();
        let text = refusal();
        assert!(
            text.contains("byte 4096 (the page of address 0x101000): its checksum"),
            "{text}"
        );
        bytes[PAGE as usize + 17] ^= 4;
        bytes.truncate(2 * PAGE as usize + 5);
        std::fs::write(&path, &bytes).unwrap();
        let text = refusal();
        assert!(
            text.contains("byte 8192") && text.contains("was cut"),
            "{text}"
        );
    }
}
