package server

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzDecode: what clients send is read or refused, for each request and
// version that is served and has no tags (see versions).
func FuzzDecode(f *testing.F) {
	for key, v := range versions {
		for version := v.oldest; version <= v.newest; version++ {
			request := kmsg.RequestForKey(int16(key))
			request.SetVersion(version)
			whole := kmsg.NewRequestFormatter(kmsg.FormatterClientID("client")).AppendRequest(nil, request, 1)
			f.Add(int16(key), version, whole[headBytes:])
		}
	}
	f.Fuzz(func(t *testing.T, key, version int16, rest []byte) {
		v, served := versions[kmsg.Key(key)]
		if !served || version < v.oldest || version > v.newest || len(rest) > 1<<16 {
			return
		}
		request := kmsg.RequestForKey(key)
		request.SetVersion(version)
		if request.IsFlexible() {
			return
		}
		if _, err := decode(request, rest); err == nil {
			request.AppendTo(nil)
		}
	})
}

// A request that the protocol's own encoder made is read.
func TestDecode(t *testing.T) {
	server := New(Config{})
	for key, v := range versions {
		for version := v.oldest; version <= v.newest; version++ {
			request := kmsg.RequestForKey(int16(key))
			request.SetVersion(version)
			whole := kmsg.NewRequestFormatter(kmsg.FormatterClientID("client")).AppendRequest(nil, request, 1)
			if clientID, err := decode(request, whole[headBytes:]); err != nil || clientID != "client" {
				t.Errorf("%s v%d of %q: %v", key.Name(), version, clientID, err)
			}
			if server.handlers[key] == nil && key != kmsg.Produce {
				t.Errorf("nothing answers %s", key.Name())
			}
			if mayAsk(0, key) && request.IsFlexible() {
				t.Errorf("%s v%d has tags", key.Name(), version)
			}
		}
	}
}
