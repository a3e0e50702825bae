package grouping

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// Status is what people decided about a group.
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

// GroupID is the id of the group that a hash creates. It follows
// from the hash, so groups rebuilt from the log keep their ids.
func GroupID(project string, version int, deciding Hash) string {
	sum := sha256.Sum256([]byte(project + "\n" + strconv.Itoa(version) + "\n" + deciding.String()))
	return groupPrefix + hex.EncodeToString(sum[:16])
}

const groupPrefix = "grp_"

// IsGroupID reports whether text has the form of a group's id.
func IsGroupID(text string) bool {
	digits, ok := strings.CutPrefix(text, groupPrefix)
	return ok && len(digits) == 32 && strings.Trim(digits, "0123456789abcdef") == ""
}
