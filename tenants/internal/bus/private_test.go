package bus

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/tenants"
)

// Every event is published, or marked as unpublished: another
// would block all credentials behind it, even revocations.
func TestEveryEventIsPublished(t *testing.T) {
	for _, event := range tenants.Events() {
		r := recorded{Version: 1, Event: event}
		if event.Publication() == tenants.Unpublished {
			continue
		}
		messages, err := published(r, []recorded{r})
		if err != nil {
			t.Errorf("%T: %v", event, err)
			continue
		}
		isCredential := messages[0].Topic == contract.TopicCredentials
		if want := event.Publication() == tenants.PublishedCredential; isCredential != want {
			t.Errorf("%T goes to %s first", event, messages[0].Topic)
		}
	}
}

// What is unpublished changes nothing published behind it: it is skipped.
func TestUnpublishedEventsChangeNothing(t *testing.T) {
	streams := streamsOf(samples(t))
	for _, stream := range streams {
		for _, private := range stream.unpublished {
			for _, first := range stream.published {
				for _, last := range stream.published {
					without, with := lastPublished(t, first, last), lastPublished(t, first, private, last)
					if with != without {
						t.Errorf("%T between %T and %T: published is\n%s\nwithout it\n%s", private, first, last, with, without)
					}
				}
			}
		}
	}
	if keys := streams[reflect.TypeFor[*tenants.APIKey]()]; keys == nil || len(keys.unpublished) == 0 || len(keys.published) == 0 {
		t.Errorf("nothing was compared: %+v", keys)
	}
}

// A stream is the samples of events about one kind of thing.
type stream struct{ unpublished, published []tenants.Event }

func streamsOf(events []tenants.Event) map[reflect.Type]*stream {
	streams := map[reflect.Type]*stream{}
	for _, event := range events {
		about := reflect.TypeOf(tenants.Fold(event))
		if streams[about] == nil {
			streams[about] = &stream{}
		}
		if s := streams[about]; event.Publication() == tenants.Unpublished {
			s.unpublished = append(s.unpublished, event)
		} else {
			s.published = append(s.published, event)
		}
	}
	return streams
}

// samples are events as stored.
func samples(t *testing.T) (events []tenants.Event) {
	t.Helper()
	files, err := filepath.Glob("../../testdata/events/*.json")
	if err != nil || len(files) < len(tenants.Events()) {
		t.Fatalf("there are %d samples of events, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), "+")
		event, err := tenants.DecodeEvent(name, data)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
	}
	return events
}

func lastPublished(t *testing.T, events ...tenants.Event) string {
	t.Helper()
	history := make([]recorded, len(events))
	for i, event := range events {
		history[i].Event = event
	}
	messages, err := published(history[len(history)-1], history)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, m := range messages {
		fmt.Fprintln(&text, m.Topic, m.Message.UUID, m.Message.Metadata, string(m.Message.Payload))
	}
	return text.String()
}
