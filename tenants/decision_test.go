package tenants_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/weirlog/weir/tenants"
)

var (
	noon  = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	later = noon.Add(time.Hour)
)

func digest(first string) tenants.SecretDigest {
	return tenants.SecretDigest{Hash: first + "-hash", First: first, Last: "9f3e"}
}

// folder is a pointer to a state that applies events.
type folder[S any] interface {
	*S
	Apply(event tenants.Event)
}

// A decision is: given a history and a
// command, these events or this error follow.
type decision[S any] struct {
	given []tenants.Event
	when  func(state S) ([]tenants.Event, error)
	then  []tenants.Event
	fails error // errors.Is; for Invalid see faults
	// faults are the fields that the command is refused for.
	faults []string
}

func decide[S any, P folder[S]](t *testing.T, decisions map[string]decision[S]) {
	t.Helper()
	for name, d := range decisions {
		t.Run(name, func(t *testing.T) {
			var state S
			for _, event := range d.given {
				P(&state).Apply(event)
			}
			events, err := d.when(state)
			if !errors.Is(err, d.fails) && d.faults == nil {
				t.Errorf("error: got %v, want %v", err, d.fails)
			}
			if got := faultyFields(err); !reflect.DeepEqual(got, d.faults) {
				t.Errorf("faults: got %q (%v), want %q", got, err, d.faults)
			}
			if !reflect.DeepEqual(events, d.then) {
				t.Errorf("events: got %+v, want %+v", events, d.then)
			}
		})
	}
}

func faultyFields(err error) (fields []string) {
	var invalid tenants.Invalid
	if errors.As(err, &invalid) {
		for _, fault := range invalid {
			fields = append(fields, fault.Field)
		}
	}
	return fields
}
