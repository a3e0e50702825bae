// Package images makes the container images of every program: a static
// binary on an empty base with certificates and time zones, and a bill
// of materials, with the same digests for the same commit wherever it
// is built. It needs only Go, neither an engine nor a registry.
package images
