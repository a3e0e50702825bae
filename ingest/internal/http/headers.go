package http

import (
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/weirlog/weir/shared/httpapi"
)

// requestOptions are the options in a request's headers.
type requestOptions struct {
	key         string // of the header x-api-key; "" also with two different ones
	encoding    encoding
	strict      bool   // one invalid entry refuses them all
	preferred   string // for Preference-Applied
	idempotency string // the Idempotency-Key
}

// readHeaders parses a request's options. strict is the server's default.
func readHeaders(header http.Header, strict bool) (requestOptions, error) {
	options := requestOptions{strict: strict}
	var err error
	if options.key, err = httpapi.OneHeader(header, "X-Api-Key"); err != nil {
		return options, err
	}
	if err = requireJSON(header); err != nil {
		return options, err
	}
	if options.encoding, err = encodingOf(header); err != nil {
		return options, err
	}
	readPrefer(header.Values("Prefer"), &options)
	options.idempotency, err = readIdempotencyKey(header.Values("Idempotency-Key"))
	return options, err
}

func requireJSON(header http.Header) error {
	contentType, err := httpapi.OneHeader(header, "Content-Type")
	if err != nil || contentType == "application/json" {
		return err
	}
	media, parameters, err := mime.ParseMediaType(contentType)
	charset, given := parameters["charset"]
	if err == nil && media == "application/json" && (!given || strings.EqualFold(charset, "utf-8")) {
		return nil
	}
	return httpapi.NewProblem(http.StatusBadRequest, "unsupported_media_type",
		fmt.Sprintf("The content type is %.100q. Send application/json, in UTF-8.", contentType))
}

// readPrefer reads handling=strict and handling=lenient of RFC 7240; the first
// of a preference counts. Unknown preferences are ignored, by the RFC.
func readPrefer(values []string, options *requestOptions) {
	for _, preference := range splitUnquoted(values, ',') {
		preference = splitUnquoted([]string{preference}, ';')[0] // without its parameters
		name, value, _ := strings.Cut(preference, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "handling") {
			continue
		}
		switch value = strings.ToLower(unquote(strings.TrimSpace(value))); value {
		case "strict", "lenient":
			options.strict, options.preferred = value == "strict", "handling="+value
			return
		}
	}
}

// splitUnquoted cuts each value at separators outside of quoted
// strings (RFC 9110, section 5.6.4).
func splitUnquoted(values []string, separator byte) (parts []string) {
	for _, value := range values {
		start, quoted := 0, false
		for i := 0; i < len(value); i++ {
			switch c := value[i]; {
			case quoted && c == '\\':
				i++
			case c == '"':
				quoted = !quoted
			case c == separator && !quoted:
				parts = append(parts, value[start:i])
				start = i + 1
			}
		}
		parts = append(parts, value[start:])
	}
	return parts
}

// unquote returns the content of a quoted string; other text stays.
func unquote(text string) string {
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return text
	}
	plain := make([]byte, 0, len(text))
	for i := 1; i < len(text)-1; i++ {
		if text[i] == '\\' && i+1 < len(text)-1 {
			i++
		}
		plain = append(plain, text[i])
	}
	return string(plain)
}

func readIdempotencyKey(values []string) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	printable := strings.IndexFunc(key, func(r rune) bool { return r < 0x20 || r > 0x7e }) < 0
	if len(values) > 1 || len(key) == 0 || len(key) > 255 || !printable {
		return "", httpapi.NewProblem(http.StatusBadRequest, "invalid_idempotency_key",
			"The header Idempotency-Key must be there once, with 1 to 255 printable ASCII characters.")
	}
	return key, nil
}
