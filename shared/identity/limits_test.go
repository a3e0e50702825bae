package identity_test

import (
	"testing"

	"github.com/alecthomas/kong"

	"github.com/weirlog/weir/shared/identity"
)

// A renamed setting still accepts its former name.
func TestFormerNamesOfSettings(t *testing.T) {
	for name, arguments := range map[string][]string{
		"WEIR_ANONYMOUS_PER_MINUTE": nil, "WEIR_STRANGERS_PER_MINUTE": nil,
		"": {"--strangers-per-minute=7"},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "" {
				t.Setenv(name, "7")
			}
			var limits identity.Limits
			parser, err := kong.New(&limits)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.Parse(arguments); err != nil || limits.AnonymousPerMinute != 7 {
				t.Errorf("limits %+v, %v", limits, err)
			}
		})
	}
}
