package httpapi

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// Media types of answers.
const (
	TypeJSON  = "application/json"
	TypeLines = "application/x-ndjson"
	TypeCSV   = "text/csv"
)

// Preferred is the media type that the client prefers, of those offered; the
// first without a preference. Of several that it likes alike it is the last.
func Preferred(r *http.Request, offered ...string) string {
	likes := make(map[string]float64, len(offered))
	for _, accepted := range strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",") {
		kind, parameters, err := mime.ParseMediaType(accepted)
		if err != nil {
			continue
		}
		quality, err := strconv.ParseFloat(parameters["q"], 64)
		if err != nil {
			quality = 1
		}
		likes[kind] = quality
	}
	preferred := offered[0]
	for _, kind := range offered[1:] {
		if likes[kind] > 0 && likes[kind] >= likes[preferred] {
			preferred = kind
		}
	}
	return preferred
}
