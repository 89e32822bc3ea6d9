//! Coefficients of the interpolations, one file a function.

pub mod exponential;
pub mod hyperbolic_tangent;
pub mod logarithm;
pub mod reciprocal;
pub mod reciprocal_square_root;
pub mod sine;
pub mod square_root;
