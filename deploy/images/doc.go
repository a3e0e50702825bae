// Package images makes the container images of every program: a static binary
// on an empty base with certificates and time zones, and a bill of materials.
// It needs Go alone, neither an engine nor a registry. The same commit,
// wherever it is built, becomes the same digests.
package images
