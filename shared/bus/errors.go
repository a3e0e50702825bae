package bus

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed answers every call on something that was closed. Nothing was sent.
	ErrClosed = errors.New("bus is closed")

	// ErrUnknownOutcome means that a message was perhaps written, perhaps not, and that this caller will never know
	// which: the answer was lost, or the caller did not wait for it. Every other error of a Publisher means: not written.
	ErrUnknownOutcome = errors.New("outcome unknown: written or not written")

	// ErrTooLarge refuses a message that no batch can hold. Nothing was sent.
	ErrTooLarge = errors.New("message too large")

	// ErrUnknownTopic means that the brokers do not know the topic. Nothing was sent.
	ErrUnknownTopic = errors.New("unknown topic")

	// ErrNotDelivered means that a message could not be written before its delivery timeout, and was not written.
	ErrNotDelivered = errors.New("not delivered in time")

	// ErrFenced means that another consumer owns the positions now: what was being applied was rolled back.
	ErrFenced = errors.New("position is owned by another consumer")

	// ErrNeverRead means that a partition's log does not go back to its beginning any more, and the consumer has never read it.
	ErrNeverRead = errors.New("records are gone that were never read")
	// ErrOutsideLog means that a position lies before the start or beyond the end of its partition's log.
	ErrOutsideLog = errors.New("position outside the log")

	// ErrTopicReplaced means that a position or a snapshot belongs to a topic that was deleted, and that there is another one of its name now.
	ErrTopicReplaced = errors.New("the topic was deleted and made again")
)

// PermanentError marks what no repetition can heal.
type PermanentError struct {
	Err       error
	Record    bool // partition and offset name the record to blame
	Partition int
	Offset    int64
}

func (e *PermanentError) Error() string { return e.Err.Error() }
func (e *PermanentError) Unwrap() error { return e.Err }

// Permanent marks err as the fault of a record that can never be applied. A Handler returns it to have the record found by
// bisection and parked. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &PermanentError{Err: err}
}

// PermanentRecord is Permanent for a handler that knows which record is to blame: it spares the bisection.
func PermanentRecord(r Record, err error) error {
	if err == nil {
		return nil
	}
	return &PermanentError{Err: err, Record: true, Partition: r.Partition, Offset: r.Offset}
}

// IsPermanent reports whether err, or an error that it wraps, was marked by Permanent or PermanentRecord.
func IsPermanent(err error) bool {
	var marked *PermanentError
	return errors.As(err, &marked)
}

// PanicError is a handler's panic as an error.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("handler panicked: %v\n%s", e.Value, e.Stack) }
