package eventstoretest

import (
	"encoding/json"
	"fmt"

	"github.com/weirlog/weir/shared/eventstore"
)

// Counted is the only event of the suite.
type Counted struct {
	By   int    `json:"by"`
	Note string `json:"note,omitempty"`
}

// Counter is the sum of what was counted.
type Counter struct {
	Sum   int
	Times int
}

// Apply adds an event.
func (c *Counter) Apply(event Counted) {
	c.Sum += event.By
	c.Times++
}

const countedName = "test.v1.counted"

// Codec returns the suite's codec.
func Codec() eventstore.Codec[Counted] {
	return eventstore.Codec[Counted]{Encode: encode, Decode: decode, Knows: func(name string) bool { return name == countedName }}
}

func encode(event Counted) (string, []byte, error) {
	data, err := json.Marshal(event)
	return countedName, data, err
}

func decode(name string, data []byte) (event Counted, err error) {
	if name != countedName {
		return event, fmt.Errorf("unknown event %q", name)
	}
	err = json.Unmarshal(data, &event)
	return event, err
}
