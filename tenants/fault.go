package tenants

import (
	"errors"
	"strings"
)

// Why a command is refused; see also Invalid.
var (
	// ErrNotFound is for what does not exist and for what belongs to
	// another organization, which look alike.
	ErrNotFound = errors.New("there is no such thing")
	// ErrReused means that the same Idempotency-Key came before
	// with another request.
	ErrReused = errors.New("the idempotency key stands for another request")
	// ErrShownOnce means that the same request came before and was answered
	// with a secret, which can't be shown again.
	ErrShownOnce = errors.New("the secret was shown once and is not kept")
	// ErrForbidden means that the caller may not do this.
	ErrForbidden = errors.New("the caller may not do this")
)

// A Fault is one value that can't be accepted.
type Fault struct {
	Field  string // as clients call it
	Detail string // names the value
	Fix    string // the way out
}

// Invalid is the error of a command with faults: all of them, so
// that they can be mended at once.
type Invalid []Fault

// Error lists the faults.
func (i Invalid) Error() string {
	var texts []string
	for _, fault := range i {
		texts = append(texts, fault.Detail)
	}
	return strings.Join(texts, " ")
}

// orNil is nil where there is no fault: an empty Invalid is no error.
func (i Invalid) orNil() error {
	if len(i) == 0 {
		return nil
	}
	return i
}
