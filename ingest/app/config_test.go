package app

import (
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/service"
)

// A stop waits for the slowest publish, by default and as configured.
func TestDrainIsLongerThanAPublish(t *testing.T) {
	for _, test := range []struct {
		name    string
		config  Config
		refused bool
	}{
		{"by default", Config{}, false},
		{"a stop that is quicker than the brokers may be", Config{Config: draining(10 * time.Second)}, true},
		{"a slow publish", Config{Publish: PublishConfig{PublishTimeout: time.Minute}}, true},
		{"both are slow", Config{Publish: PublishConfig{PublishTimeout: time.Minute}, Config: draining(2 * time.Minute)}, false},
		{"small bodies alone", Config{Bodies: BodyConfig{MaxBodyBytes: 1 << 20}, Config: draining(13 * time.Second)}, false},
	} {
		err := test.config.Validate() // of more than this, which is left open here
		if refused := strings.Contains(err.Error(), "WEIR_DRAIN"); refused != test.refused {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func draining(drain time.Duration) service.Config {
	return service.Config{ServerConfig: httpapi.ServerConfig{Drain: drain}}
}
