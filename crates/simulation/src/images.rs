//! From the images that a program hands over to code: which one, by which front end.
//!
//! As the driver chooses: machine code of the simulated generation if there is any, else the
//! newest PTX that is not too new. A relocatable program carries its PTX only in the images from
//! before linking; they are used when PTX is wanted.
//!
//! Start reading at [`load`].

use std::borrow::Cow;

use crate::assemble::{Assembler, Assembling};
use crate::shared_images::{SharedImage, SharedImages};
use lockstep_frontend::sass::fatbinary::{self, Kind, Packed};
use lockstep_frontend::{ptx, sass};
use lockstep_isa::Module;
use lockstep_isa::module::Global;
use lockstep_protocol::{CuResult, Failure, ImageKind, ImageRole, ModuleImage};
use lockstep_runtime::{CallResult, FrontendChoice, LoadOptions, ModuleSource};

/// An image by itself; what it is, its first bytes say.
pub fn image_of(mut bytes: Vec<u8>) -> ModuleImage {
    let kind = match bytes.get(..4) {
        Some(b"\x7fELF") => ImageKind::Cubin,
        Some([0x50, 0xed, 0x55, 0xba]) => ImageKind::FatBinary,
        _ => ImageKind::Ptx,
    };
    if kind == ImageKind::Ptx {
        // A text of C ends with a zero.
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
    }
    ModuleImage {
        kind,
        role: ImageRole::Main,
        bytes,
    }
}

/// Chooses among images and reads the chosen one.
///
/// # Errors
/// No image fits the GPU, or the chosen one cannot be read.
pub fn load<'assembler>(
    images: &[ModuleImage],
    options: &LoadOptions,
    shared: &SharedImages,
    assembling: Assembling,
    assembler: impl FnOnce() -> &'assembler Assembler,
) -> CallResult<Box<dyn ModuleSource>> {
    let main = entries(images, ImageRole::Main)?;
    let before_linking = entries(images, ImageRole::BeforeLinking)?;
    let code = || sass::select::cubin(&main, options.architecture);
    let chosen = match options.frontend {
        FrontendChoice::Sass if assembling != Assembling::Required => code().map(Choice::Sass),
        FrontendChoice::Ptx => texts(&main, &before_linking, options.architecture),
        FrontendChoice::Auto | FrontendChoice::Sass => code()
            .map(Choice::Sass)
            .or_else(|| texts(&main, &before_linking, options.architecture)),
    };
    match chosen {
        Some(Choice::Sass(entry)) => {
            let image = shared.read(entry).map_err(invalid)?;
            let text = match options.frontend {
                FrontendChoice::Auto => texts(&main, &before_linking, options.architecture),
                _ => None,
            };
            match text {
                Some(Choice::Ptx { texts, newer }) => {
                    sass_or_ptx(SassSource::new(image), &texts, newer, options)
                }
                _ => Ok(Box::new(SassSource::new(image))),
            }
        }
        Some(Choice::Ptx { texts, newer }) => {
            refuse_newer(&texts, newer, options)?;
            if options.frontend == FrontendChoice::Ptx || assembling == Assembling::Never {
                return read_ptx(&texts, newer, options).map(boxed);
            }
            let assembled = assembled(&texts, assembler(), options);
            match assembled {
                Err(failure) if assembling == Assembling::Required => {
                    Err(invalid_ptx(format!("--assemble: {}", failure.message)))
                }
                Ok(source) if assembling == Assembling::Required => Ok(Box::new(source)),
                Ok(source) => sass_or_ptx(source, &texts, newer, options),
                Err(failure) => {
                    let mut source = read_ptx(&texts, newer, options)?;
                    source.warning = Some(format!(
                        "PTX runs, because it could not be made into machine code: {}",
                        failure.message
                    ));
                    Ok(boxed(source))
                }
            }
        }
        None => Err(nothing_fits(&main, &before_linking, options)),
    }
}

/// PTX made into machine code for the simulated GPU.
fn assembled(
    texts: &[&Packed<'_>],
    assembler: &Assembler,
    options: &LoadOptions,
) -> CallResult<SassSource> {
    let texts = texts
        .iter()
        .map(|entry| text_of(entry))
        .collect::<CallResult<Vec<_>>>()?;
    let texts: Vec<&str> = texts.iter().map(|text| &**text).collect();
    let assembled = assembler
        .assemble(&texts, options.architecture)
        .map_err(invalid_ptx)?;
    let image = sass::Image::read(&assembled.cubin).map_err(invalid)?;
    let remark = format!(
        "the program carries no machine code for sm_{}: its PTX was assembled by {}, as a driver does",
        options.architecture, assembled.by
    );
    Ok(SassSource {
        image: SharedImage::new(image),
        notes: assembled.notes,
        remark: Some(remark),
    })
}

fn boxed(source: PtxSource) -> Box<dyn ModuleSource> {
    Box::new(source)
}

/// Machine code if all of it is known, else PTX, with a warning: its counts are not the
/// hardware's.
fn sass_or_ptx(
    code: SassSource,
    texts: &[&Packed<'_>],
    newer: bool,
    options: &LoadOptions,
) -> CallResult<Box<dyn ModuleSource>> {
    let addresses = made_up(code.image.globals().len());
    let Some(error) = code.image.unknown(&addresses) else {
        return Ok(Box::new(code));
    };
    let mut source = read_ptx(texts, newer, options).map_err(|_| invalid(error))?;
    source.warning = Some(format!(
        "PTX runs instead of machine code, so instruction counts differ from the hardware's: {error}"
    ));
    Ok(boxed(source))
}

/// An address for each variable, to see whether code can be linked at all.
fn made_up(count: usize) -> Vec<u64> {
    (0..count as u64)
        .map(|index| lockstep_protocol::layout::WINDOW_BASE + (index << 20))
        .collect()
}

enum Choice<'entry> {
    Sass(&'entry Packed<'entry>),
    /// PTX of each translation unit; `newer` if the driver would refuse it for its target.
    Ptx {
        texts: Vec<&'entry Packed<'entry>>,
        newer: bool,
    },
}

/// The PTX to run: of the main image, or one of every translation unit before linking.
fn texts<'entry>(
    main: &'entry [Packed<'entry>],
    units: &'entry [Packed<'entry>],
    architecture: u32,
) -> Option<Choice<'entry>> {
    if let Some((entry, newer)) = sass::select::ptx(main, architecture) {
        return Some(Choice::Ptx {
            texts: vec![entry],
            newer,
        });
    }
    // Units are told apart by the place of their machine code: each unit lists its PTX once.
    let (best, newer) = sass::select::ptx(units, architecture)?;
    let texts = units
        .iter()
        .filter(|entry| entry.kind == Kind::Ptx && entry.architecture == best.architecture);
    Some(Choice::Ptx {
        texts: texts.collect(),
        newer,
    })
}

/// All images of a role, as they are packed.
fn entries(images: &[ModuleImage], role: ImageRole) -> CallResult<Vec<Packed<'_>>> {
    let mut all = Vec::new();
    for image in images.iter().filter(|image| image.role == role) {
        match image.kind {
            ImageKind::FatBinary => all.extend(fatbinary::list(&image.bytes).map_err(invalid)?),
            ImageKind::Cubin => {
                let architecture = sass::Image::read(&image.bytes)
                    .map_err(invalid)?
                    .architecture();
                all.push(Packed::plain(Kind::Cubin, architecture, &image.bytes));
            }
            ImageKind::Ptx => {
                let architecture = target(&image.bytes);
                all.push(Packed::plain(Kind::Ptx, architecture, &image.bytes));
            }
        }
    }
    Ok(all)
}

/// The number after `.target sm_`; 0 if there is none, which the front end explains.
fn target(text: &[u8]) -> u32 {
    let text = String::from_utf8_lossy(&text[..text.len().min(1 << 16)]);
    let after = text
        .split(".target")
        .nth(1)
        .and_then(|rest| rest.split("sm_").nth(1))
        .unwrap_or_default();
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

fn invalid(error: impl std::fmt::Display) -> Failure {
    Failure {
        code: CuResult::INVALID_IMAGE,
        message: error.to_string(),
    }
}

fn invalid_ptx(error: impl std::fmt::Display) -> Failure {
    Failure {
        code: CuResult::INVALID_PTX,
        message: error.to_string(),
    }
}

fn nothing_fits(main: &[Packed<'_>], units: &[Packed<'_>], options: &LoadOptions) -> Failure {
    let describe = |entry: &Packed<'_>| match entry.kind {
        Kind::Ptx => format!("PTX for sm_{}", entry.architecture),
        Kind::Cubin => format!("machine code for sm_{}", entry.architecture),
        Kind::Other(kind) => format!("an image of kind {kind}"),
    };
    let found: Vec<String> = main.iter().chain(units).map(describe).collect();
    let found = if found.is_empty() {
        "nothing".into()
    } else {
        found.join(", ")
    };
    let wanted = match options.frontend {
        FrontendChoice::Sass => "machine code",
        FrontendChoice::Ptx => "PTX",
        FrontendChoice::Auto => "machine code or PTX",
    };
    Failure {
        code: CuResult::NO_BINARY_FOR_GPU,
        message: format!(
            "the program carries {found}, and {wanted} for sm_{0} is wanted; compile it with `-arch=sm_{0}`, or for \
             an older target with PTX",
            options.architecture
        ),
    }
}

struct SassSource {
    image: SharedImage,
    /// What was changed to get it.
    notes: Vec<String>,
    /// How it came to be.
    remark: Option<String>,
}

impl SassSource {
    fn new(image: SharedImage) -> Self {
        Self {
            image,
            notes: Vec::new(),
            remark: None,
        }
    }
}

impl ModuleSource for SassSource {
    fn globals(&self) -> &[Global] {
        self.image.globals()
    }

    fn warnings(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn remarks(&self) -> Vec<String> {
        self.remark.iter().cloned().collect()
    }

    fn link(self: Box<Self>, addresses: &[u64]) -> CallResult<Module> {
        self.image.link(addresses).map_err(invalid)
    }
}

struct PtxSource {
    image: ptx::Image,
    warning: Option<String>,
}

impl ModuleSource for PtxSource {
    fn globals(&self) -> &[Global] {
        self.image.globals()
    }

    fn warnings(&self) -> Vec<String> {
        self.warning.iter().cloned().collect()
    }

    fn remarks(&self) -> Vec<String> {
        vec!["PTX runs, not machine code: instruction counts and cycles are approximate".into()]
    }

    fn link(self: Box<Self>, addresses: &[u64]) -> CallResult<Module> {
        self.image.link(addresses).map_err(invalid_ptx)
    }
}

/// The text of a program that was not linked on the device from several.
fn only_text<'entry>(
    texts: &[&Packed<'entry>],
    options: &LoadOptions,
) -> CallResult<Cow<'entry, str>> {
    let [entry] = texts else {
        return Err(invalid(format!(
            "the program was compiled in {} units that are linked on the device (-rdc=true), and PTX of several \
             units cannot be linked yet; compile it with `-arch=sm_{}` so that its linked machine code can run",
            texts.len(),
            options.architecture
        )));
    };
    text_of(entry)
}

fn text_of<'entry>(entry: &Packed<'entry>) -> CallResult<Cow<'entry, str>> {
    let broken = |error| invalid(format!("PTX is text, and this is not: {error}"));
    Ok(match entry.unpack().map_err(invalid)? {
        Cow::Borrowed(bytes) => Cow::Borrowed(str::from_utf8(bytes).map_err(broken)?),
        Cow::Owned(bytes) => {
            Cow::Owned(String::from_utf8(bytes).map_err(|error| broken(error.utf8_error()))?)
        }
    })
}

/// PTX that the real driver would refuse on this GPU, if the user wants it so.
fn refuse_newer(texts: &[&Packed<'_>], newer: bool, options: &LoadOptions) -> CallResult<()> {
    if !newer || !options.strict {
        return Ok(());
    }
    Err(Failure {
        code: CuResult::NO_BINARY_FOR_GPU,
        message: format!(
            "the PTX is for sm_{}, newer than sm_{}, and --strict-image is given",
            texts[0].architecture, options.architecture
        ),
    })
}

fn read_ptx(texts: &[&Packed<'_>], newer: bool, options: &LoadOptions) -> CallResult<PtxSource> {
    let text = only_text(texts, options)?;
    let target = texts[0].architecture;
    let warning = newer.then(|| {
        format!(
            "the PTX is for sm_{target}, which the real driver would refuse on sm_{}; it runs as long as no \
             instruction needs the newer GPU",
            options.architecture
        )
    });
    let image = ptx::parse(&text).map_err(invalid_ptx)?;
    Ok(PtxSource { image, warning })
}

/// Everything that a file carries, read by the front end for its kind: what it is, and its code
/// with variables at made-up addresses.
pub fn read_all(bytes: &[u8]) -> CallResult<Vec<(String, Module)>> {
    let kind = match bytes.get(..4) {
        Some(b"\x7fELF") => ImageKind::Cubin,
        Some([0x50, 0xed, 0x55, 0xba]) => ImageKind::FatBinary,
        _ => ImageKind::Ptx,
    };
    let images = [ModuleImage {
        kind,
        role: ImageRole::Main,
        bytes: bytes.to_vec(),
    }];
    let mut all = Vec::new();
    for entry in entries(&images, ImageRole::Main)? {
        let options = LoadOptions {
            frontend: FrontendChoice::Auto,
            architecture: entry.architecture,
            strict: false,
        };
        let (name, source): (_, Box<dyn ModuleSource>) = match entry.kind {
            Kind::Cubin => {
                let image = SharedImages::default().read(&entry).map_err(invalid)?;
                ("machine code", Box::new(SassSource::new(image)))
            }
            Kind::Ptx => ("PTX", boxed(read_ptx(&[&entry], false, &options)?)),
            Kind::Other(_) => continue,
        };
        let addresses = made_up(source.globals().len());
        let module = source.link(&addresses)?;
        all.push((format!("{name} for sm_{}", entry.architecture), module));
    }
    Ok(all)
}
