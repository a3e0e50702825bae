package httpapi

import (
	"strings"
	"unicode/utf8"
)

// ClipUserAgent returns the stored part of a User-Agent: no credentials,
// valid UTF-8, at most limit bytes, whole characters, no control characters.
func ClipUserAgent(client string, limit int) string {
	client = Redact(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < ' ' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, client)) // not the other way round: removed characters may have split a credential
	if len(client) <= limit {
		return client
	}
	end := limit
	for !utf8.RuneStart(client[end]) {
		end--
	}
	return client[:end]
}
