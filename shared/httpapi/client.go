package httpapi

import (
	"strings"
	"unicode/utf8"
)

// ClipUserAgent is the part of a User-Agent that is kept: no credentials, valid
// UTF-8, at most limit bytes, whole characters, no control characters.
func ClipUserAgent(client string, limit int) string {
	client = Redact(strings.Map(func(r rune) rune {
		if r == utf8.RuneError || r < ' ' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, client)) // not the other way round: what is left out may have parted a credential
	if len(client) <= limit {
		return client
	}
	end := limit
	for !utf8.RuneStart(client[end]) {
		end--
	}
	return client[:end]
}
