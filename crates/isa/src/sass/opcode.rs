//! What an instruction does: the first word of its spelling.

macro_rules! names {
    ($($variant:ident $name:literal,)*) => {
        /// The first word of an instruction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(non_camel_case_types, reason = "shapes read better as 64x8x16")]
        pub enum Opcode {
            $(#[doc = concat!("`", $name, "`.")] $variant,)*
        }

        const NAMES: &[(&str, Opcode)] = &[$(($name, Opcode::$variant),)*];
    };
}

// Sorted by spelling.
names! {
    Acqbulk "ACQBULK",
    Arrives "ARRIVES",
    Atom "ATOM",
    Atomg "ATOMG",
    Atoms "ATOMS",
    B2r "B2R",
    Bar "BAR",
    Bgmma "BGMMA",
    Bmma "BMMA",
    Bmov "BMOV",
    Bmsk "BMSK",
    Bpt "BPT",
    Bra "BRA",
    Break "BREAK",
    Brev "BREV",
    Brx "BRX",
    Bssy "BSSY",
    Bsync "BSYNC",
    Call "CALL",
    Cctl "CCTL",
    Cgaerrbar "CGAERRBAR",
    Cs2r "CS2R",
    Dadd "DADD",
    Depbar "DEPBAR",
    Dfma "DFMA",
    Dmma "DMMA",
    Dmul "DMUL",
    Dsetp "DSETP",
    Elect "ELECT",
    Endcollective "ENDCOLLECTIVE",
    Errbar "ERRBAR",
    Exit "EXIT",
    F2f "F2F",
    F2fp "F2FP",
    F2i "F2I",
    F2ip "F2IP",
    Fadd "FADD",
    Fchk "FCHK",
    Fence "FENCE",
    Ffma "FFMA",
    Flo "FLO",
    Fmnmx "FMNMX",
    Fmul "FMUL",
    Frnd "FRND",
    Fsel "FSEL",
    Fset "FSET",
    Fsetp "FSETP",
    Fswzadd "FSWZADD",
    Hadd2 "HADD2",
    Hfma2 "HFMA2",
    Hgmma "HGMMA",
    Hmma "HMMA",
    Hmnmx2 "HMNMX2",
    Hmul2 "HMUL2",
    Hset2 "HSET2",
    Hsetp2 "HSETP2",
    I2f "I2F",
    I2fp "I2FP",
    I2i "I2I",
    I2ip "I2IP",
    Iabs "IABS",
    Iadd3 "IADD3",
    Idp "IDP",
    Igmma "IGMMA",
    Imad "IMAD",
    Imma "IMMA",
    Imnmx "IMNMX",
    Isetp "ISETP",
    Kill "KILL",
    Ld "LD",
    Ldc "LDC",
    Ldg "LDG",
    Ldgdepbar "LDGDEPBAR",
    Ldgmc "LDGMC",
    Ldgsts "LDGSTS",
    Ldl "LDL",
    Lds "LDS",
    Ldsm "LDSM",
    Lea "LEA",
    Lepc "LEPC",
    Lop3 "LOP3",
    Match "MATCH",
    Membar "MEMBAR",
    Mov "MOV",
    Movm "MOVM",
    Mufu "MUFU",
    Nanosleep "NANOSLEEP",
    Nop "NOP",
    P2r "P2R",
    Plop3 "PLOP3",
    Pmtrig "PMTRIG",
    Popc "POPC",
    Preexit "PREEXIT",
    Prmt "PRMT",
    Qgmma "QGMMA",
    Qmma "QMMA",
    Qspc "QSPC",
    R2p "R2P",
    R2ur "R2UR",
    Red "RED",
    Redas "REDAS",
    Redg "REDG",
    Redux "REDUX",
    Ret "RET",
    S2r "S2R",
    S2ur "S2UR",
    Sel "SEL",
    Sgxt "SGXT",
    Shf "SHF",
    Shfl "SHFL",
    St "ST",
    Stas "STAS",
    Stg "STG",
    Stl "STL",
    Sts "STS",
    Stsm "STSM",
    Suld "SULD",
    Sured "SURED",
    Sust "SUST",
    Syncs "SYNCS",
    Tex "TEX",
    Tld "TLD",
    Tld4 "TLD4",
    Tmml "TMML",
    Txd "TXD",
    Txq "TXQ",
    Ublkcp "UBLKCP",
    Ublkpf "UBLKPF",
    Ublkred "UBLKRED",
    Ubmsk "UBMSK",
    Ubrev "UBREV",
    UcgabarArv "UCGABAR_ARV",
    UcgabarWait "UCGABAR_WAIT",
    Uflo "UFLO",
    Uiadd3 "UIADD3",
    Uimad "UIMAD",
    Uisetp "UISETP",
    Uldc "ULDC",
    Ulea "ULEA",
    Ulop3 "ULOP3",
    Umov "UMOV",
    Up2ur "UP2UR",
    Uplop3 "UPLOP3",
    Upopc "UPOPC",
    Uprmt "UPRMT",
    Ur2up "UR2UP",
    Usel "USEL",
    Usetmaxreg "USETMAXREG",
    Usetshmsz "USETSHMSZ",
    Usgxt "USGXT",
    Ushf "USHF",
    Utmacctl "UTMACCTL",
    Utmacmdflush "UTMACMDFLUSH",
    Utmaldg "UTMALDG",
    Utmapf "UTMAPF",
    Utmaredg "UTMAREDG",
    Utmastg "UTMASTG",
    Vabsdiff "VABSDIFF",
    Vabsdiff4 "VABSDIFF4",
    Viadd "VIADD",
    Viaddmnmx "VIADDMNMX",
    Vimnmx "VIMNMX",
    Vimnmx3 "VIMNMX3",
    Vote "VOTE",
    Voteu "VOTEU",
    Warpgroup "WARPGROUP",
    Warpsync "WARPSYNC",
    Yield "YIELD",
}

impl Opcode {
    /// The spelling.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES[self as usize].0
    }

    /// The one that is spelled `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let at = NAMES.binary_search_by_key(&name, |&(name, _)| name).ok()?;
        Some(NAMES[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_are_sorted_and_found() {
        assert!(NAMES.is_sorted_by_key(|&(name, _)| name));
        for &(name, value) in NAMES {
            assert_eq!(Opcode::from_name(name), Some(value));
            assert_eq!(value.name(), name);
        }
    }
}
