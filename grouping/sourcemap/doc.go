// Package sourcemap reads source maps of version 3 (ECMA-426), keeps them in
// parts, and finds in one part where calls were written. It does no I/O.
package sourcemap
