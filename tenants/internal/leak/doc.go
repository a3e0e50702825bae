// Package leak verifies reports of secrets found in public, as
// GitHub's secret scanning partner program sends them, signed
// with ECDSA P-256 over SHA-256 by one of a few published
// keys. It may fetch those keys, and touches no table.
package leak
