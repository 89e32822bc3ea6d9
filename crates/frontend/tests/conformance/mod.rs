//! Every form of PTX that computes, as PTX and as the machine code that `ptxas` makes of it, against an H200.
//!
//! `grammar.txt` lists forms, [`form`] makes a kernel of each, [`values`] its operands from a seed. `h200` holds what
//! `record.cu` wrote on an H200: `manifest.txt` names the forms, `cubins.zst` is the machine code that ran, and
//! `seed1.zst` and `seed2.zst` are the results, as digests of all and, for special values of the first seed, in full.

mod form;
mod recorded;
mod replay;
mod spellings;
mod values;
