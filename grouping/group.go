package grouping

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// Status is what people have decided about a group.
type Status string

// The statuses. Every group begins unresolved.
const (
	Unresolved Status = "unresolved"
	Resolved   Status = "resolved"
	Ignored    Status = "ignored"
)

// ParseStatus reads a status.
func ParseStatus(word string) (Status, bool) {
	s := Status(word)
	return s, s == Unresolved || s == Resolved || s == Ignored
}

// GroupID is the id of the group that a hash founds. It follows from the hash, so that groups that are rebuilt from
// the log keep their addresses.
func GroupID(project string, version int, deciding Hash) string {
	sum := sha256.Sum256([]byte(project + "\n" + strconv.Itoa(version) + "\n" + deciding.String()))
	return "grp_" + hex.EncodeToString(sum[:16])
}
