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
	TypeHTML  = "text/html"
)

// Preferred returns the offered media type that the client prefers; the
// first without a preference, the last of several equals.
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
