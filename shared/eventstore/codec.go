package eventstore

import "fmt"

// A Codec encodes and decodes events. Names carry the version of the
// form, such as "tenants.v1.project_created", and are literals, so that
// renaming a Go type changes no data. Decode upgrades old versions:
// Apply sees only the newest.
type Codec[E any] struct {
	Encode func(event E) (name string, data []byte, err error) // data is JSON
	Decode func(name string, data []byte) (E, error)

	// Private reports whether an event is never published; nil: none is
	// private. It is stored, for programs that don't know the event.
	Private func(event E) bool
	// Knows reports whether Decode reads events of a name; nil: it reads all.
	Knows func(name string) bool
}

// Encoded is one event in its stored form.
type Encoded struct {
	Name    string
	Data    []byte
	Private bool // its writer declared it never published
}

// EncodeAll encodes events in order; it stops at the first error.
func (c Codec[E]) EncodeAll(events []E) ([]Encoded, error) {
	encoded := make([]Encoded, 0, len(events))
	for _, event := range events {
		name, data, err := c.Encode(event)
		if err != nil {
			return nil, fmt.Errorf("cannot encode event %T: %w", event, err)
		}
		encoded = append(encoded, Encoded{Name: name, Data: data, Private: c.Private != nil && c.Private(event)})
	}
	return encoded, nil
}

// DecodeInto decodes one stored event into recorded. Its error names
// stream and version.
func (c Codec[E]) DecodeInto(recorded *Recorded[E], stored Encoded) error {
	event, err := c.Decode(stored.Name, stored.Data)
	if err != nil {
		return fmt.Errorf("cannot decode event %q at %q version %d: %w", stored.Name, recorded.Stream, recorded.Version, err)
	}
	recorded.Event = event
	return nil
}

// DecodeOutward is DecodeInto for publishers of events: a private one
// of a later version is Unknown.
func (c Codec[E]) DecodeOutward(recorded *Recorded[E], stored Encoded) error {
	if stored.Private && c.Knows != nil && !c.Knows(stored.Name) {
		recorded.Unknown = true
		return nil
	}
	return c.DecodeInto(recorded, stored)
}
