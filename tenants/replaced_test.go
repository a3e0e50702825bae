package tenants_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/weirlog/weir/tenants"
)

// A thing is the same without the events that later ones replace, whatever else happens to it.
func TestReplacedEventsChangeNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	replaced := map[string]bool{}
	for _, event := range tenants.ReplacedEvents() {
		replaced[event.EventName()] = true
	}
	for subject, events := range eventsBySubject() {
		for range 200 {
			history := randomHistory(t, random, events)
			if whole, less := tenants.Fold(history...), tenants.Fold(withoutReplaced(history, replaced)...); !reflect.DeepEqual(whole, less) {
				t.Fatalf("%s after %+v:\n%+v\nwithout what is replaced:\n%+v", subject, history, whole, less)
			}
		}
	}
}

// eventsBySubject are the samples that happen to one type of thing, in the order of their names.
func eventsBySubject() map[string][]tenants.Event {
	samples, bySubject := samples(), map[string][]tenants.Event{}
	names := make([]string, 0, len(samples))
	for name := range samples {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		subject := fmt.Sprintf("%T", tenants.Fold(samples[name]))
		bySubject[subject] = append(bySubject[subject], samples[name])
	}
	return bySubject
}

// randomHistory is a dozen events with random content.
func randomHistory(t *testing.T, random *rand.Rand, events []tenants.Event) (history []tenants.Event) {
	t.Helper()
	for range 12 {
		history = append(history, varied(t, random, events[random.IntN(len(events))]))
	}
	return history
}

// varied is an event with other words, numbers and switches.
func varied(t *testing.T, random *rand.Rand, event tenants.Event) tenants.Event {
	t.Helper()
	name, data, err := tenants.EncodeEvent(event)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(data, &members); err != nil {
		t.Fatal(err)
	}
	for member, value := range members {
		switch value := value.(type) {
		case bool:
			members[member] = random.IntN(2) == 0
		case float64:
			members[member] = random.IntN(100)
		case string:
			if !isTime(value) {
				members[member] = fmt.Sprint(value, random.IntN(100))
			}
		}
	}
	data, err = json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	other, err := tenants.DecodeEvent(name, data)
	if err != nil {
		t.Fatal(err)
	}
	return other
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// withoutReplaced leaves out what a later event of the same type replaces.
func withoutReplaced(history []tenants.Event, replaced map[string]bool) (left []tenants.Event) {
	for i, event := range history {
		again := slices.ContainsFunc(history[i+1:], func(later tenants.Event) bool { return later.EventName() == event.EventName() })
		if !again || !replaced[event.EventName()] {
			left = append(left, event)
		}
	}
	return left
}
