package app

import (
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
)

// A stop waits for whatever is being published, as it is set by
// default and otherwise.
func TestDrainIsLongerThanAPublish(t *testing.T) {
	for _, test := range []struct {
		name    string
		config  Config
		refused bool
	}{
		{"by default", Config{}, false},
		{"a stop that is quicker than the brokers may be", Config{ServerConfig: httpapi.ServerConfig{Drain: 10 * time.Second}}, true},
		{"a slow publish", Config{PublishTimeout: time.Minute}, true},
		{"both are slow", Config{PublishTimeout: time.Minute, ServerConfig: httpapi.ServerConfig{Drain: 2 * time.Minute}}, false},
		{"small bodies alone", Config{MaxBodyBytes: 1 << 20, ServerConfig: httpapi.ServerConfig{Drain: 13 * time.Second}}, false},
	} {
		err := test.config.Validate() // of more than this, which is left open here
		if refused := strings.Contains(err.Error(), "WEIR_DRAIN"); refused != test.refused {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
