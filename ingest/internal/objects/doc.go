// Package objects keeps objects that never change: in a folder, or in a
// bucket of S3 or of a storage that speaks its protocol.
package objects
