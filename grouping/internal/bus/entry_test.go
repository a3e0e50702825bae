package bus

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/weirlog/weir/grouping"
)

// Only an entry's own members count, by their exact names,
// however escaped; a member of another type counts as absent.
func TestParseEntry(t *testing.T) {
	for text, want := range map[string]entry{
		`{}`: {},
		`{"timestamp":"2026-01-02T03:04:05Z","level":"error","message":"m","environment":"prod","error":{"type":"T","message":"x","stack_trace":["a","b\n"]}}`: {
			timestamp: "2026-01-02T03:04:05Z", level: "error", message: "m", environment: "prod", hasError: true,
			err: grouping.Error{Type: "T", Message: "x", StackTrace: []string{"a", "b\n"}}},
		`{"metadata":{"release":"2.1.0","version":"3","a":{"release":"4"}},"error":{}}`:                                  {metadata: metadata{"2.1.0", "3"}, hasError: true},
		`{"metadata":{"version":3,"release":null},"error":{}}`:                                                           {hasError: true},
		`{"metadata":{"user":{"name":"Ada","id":7},"service":{"name":"shop"},"host":{"name":"web-1"}},"error":{}}`:       {metadata: metadata{4: "shop", 6: "7", 10: "web-1"}, hasError: true},
		`{"metadata":{"user":" ada ","service.name":"shop","host":"web-1\n","user.id":null,"service":["a"]},"error":{}}`: {metadata: metadata{4: "shop", 7: "ada", 9: "web-1"}, hasError: true},
		`{"metadata":{"user":-12.5,"service":{"name":"a"},"service.name":"b","host":3,"userx":"y"},"error":{}}`:          {metadata: metadata{4: "b", 7: "-12.5"}, hasError: true},
		`{"metadata":[{"release":"2.1.0"}],"error":{}}`:                                                                  {hasError: true},
		`{"Error":{"type":"T"},"LEVEL":"info","metadata":{"error":{"type":"N"},"a":[1,{"b":"]}\""}]},"message":"m"}`:     {message: "m"},
		`{"\u0065rror":{"\u0074ype":"T\u0000\"\\","context":{"type":"N"}}}`:                                              {hasError: true, err: grouping.Error{Type: "T\x00\"\\"}},
		`{"error":null,"message":"m"}`: {message: "m"},
		`{"error":{}}`:                 {hasError: true},
		`{"error":{"type":7,"message":["x"],"stack_trace":{}}}`: {hasError: true},
		`{"error":{"stack_trace":[]},"level":true}`:             {hasError: true},
		`{"error":{"stack_trace":["a",null,"b"]}}`:              {hasError: true, err: grouping.Error{StackTrace: []string{"a", "", "b"}}},
		`{"error":{"stack_trace":"a\nb"}}`:                      {hasError: true, err: grouping.Error{StackTrace: []string{"a\nb"}}},
	} {
		got, err := new(scanner).entry(text, pathsOf(grouping.DefaultPaths()))
		got.metadataText = "" // TestContext looks at it
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %+v, %v\nwant %+v", text, got, err, want)
		}
	}
}

// Text that is no JSON object is an error, never a panic or an endless loop.
func TestParseEntryPoison(t *testing.T) {
	for _, text := range []string{``, `[`, `{`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":}`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{"a":"\`, `{"error":{"stack_trace":["a"`,
		`{"error":{"type":"\x"}}`, `{}x`, `null`, `"a"`, `{"a":[}`, `{"a":]}`, `{"a":,}`} {
		if _, err := new(scanner).entry(text, pathsOf(grouping.DefaultPaths())); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// Valid JSON is read as encoding/json reads it;
// other text does no harm. No error is overlooked.
func FuzzParseEntry(f *testing.F) {
	f.Add(`{"level":"error","error":{"type":"T","stack_trace":["a",1,[],"b"]},"m":{"a":[1,2,{}]}}`)
	f.Add(`{"\u0065rror":{"type":"\u0054"}}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := new(scanner).entry(text, pathsOf(grouping.DefaultPaths()))
		var members map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &members) != nil || members == nil {
			return
		}
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		var payload map[string]json.RawMessage
		if errored := json.Unmarshal(members["error"], &payload) == nil && payload != nil; errored != got.hasError {
			t.Fatalf("%q: errored %v, want %v", text, got.hasError, errored)
		}
	})
}
