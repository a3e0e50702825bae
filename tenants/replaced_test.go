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

// A thing is the same without its replaced
// events, whatever else happens to it.
func TestReplacedEventsChangeNothing(t *testing.T) {
	random, replaced := rand.New(rand.NewPCG(1, 2)), replacedByName()
	for subject, events := range eventsBySubject() {
		for range 200 {
			history := randomHistory(t, random, events)
			if whole, less := tenants.Fold(history...), tenants.Fold(withoutReplaced(t, history, replaced)...); !reflect.DeepEqual(whole, less) {
				t.Fatalf("%s after %+v:\n%+v\nwithout what is replaced:\n%+v", subject, history, whole, less)
			}
		}
	}
}

// A password set by a code removed the identity at
// the provider, which another password does not.
func TestAResetIsReplacedByAResetAlone(t *testing.T) {
	reset, change := tenants.MemberPasswordChanged{Member: "mem_1", PasswordHash: "x", Reset: true}, tenants.MemberPasswordChanged{Member: "mem_1", PasswordHash: "y"}
	for _, then := range [][]tenants.Event{{change}, {change, change}, {reset}, {reset, change}} {
		history := append([]tenants.Event{memberAdded(), memberIdentified(), reset}, then...)
		less := withoutReplaced(t, history, replacedByName())
		if member := tenants.Fold(less...).(*tenants.Member); member.Identity != (tenants.ProviderIdentity{}) || len(less) > 4 {
			t.Errorf("%d of %d events are left, and make %+v", len(less), len(history), member)
		}
	}
}

func replacedByName() map[string]tenants.ReplacedEvent {
	replaced := map[string]tenants.ReplacedEvent{}
	for _, each := range tenants.ReplacedEvents() {
		replaced[each.Event.EventName()] = each
	}
	return replaced
}

// eventsBySubject are the samples of one type of thing, sorted by name.
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

// varied is an event with random words, numbers and switches.
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

// withoutReplaced leaves out events that later ones of the same type replace.
func withoutReplaced(t *testing.T, history []tenants.Event, replaced map[string]tenants.ReplacedEvent) (left []tenants.Event) {
	t.Helper()
	for i, event := range history {
		as, found := replaced[event.EventName()]
		count := 0
		for _, later := range history[i+1:] {
			if later.EventName() == event.EventName() && (!isOn(t, event, as.Switch) || isOn(t, later, as.Switch)) {
				count++
			}
		}
		if !found || count < as.By {
			left = append(left, event)
		}
	}
	return left
}

// isOn reports whether a member of an event's data is true.
func isOn(t *testing.T, event tenants.Event, member string) bool {
	t.Helper()
	if member == "" {
		return false
	}
	_, data, err := tenants.EncodeEvent(event)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(data, &members); err != nil {
		t.Fatal(err)
	}
	return members[member] == true
}
