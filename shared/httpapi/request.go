package httpapi

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// maxSmallBody is the largest body of an administrative request, in bytes.
const maxSmallBody = 64 << 10

// smallBodyTime limits the time of a small body: a slow sender
// holds a connection.
const smallBodyTime = 10 * time.Second

// ReadBody reads a small body within smallBodyTime. One larger than
// limit bytes is an *http.MaxBytesError.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	return readBody(w, r, limit, smallBodyTime)
}

func readBody(w http.ResponseWriter, r *http.Request, limit int64, within time.Duration) ([]byte, error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(within)) //nolint:forbidigo // the connection's deadline
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	return io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
}

// ReadJSON decodes a small body (at most 64 KiB) into value, as
// strictly as the intake: it answers 400 to another content type,
// invalid UTF-8, lone surrogates, duplicate names, unknown members and
// anything after the object.
func ReadJSON(w http.ResponseWriter, r *http.Request, value any) error {
	return ReadJSONUpTo(w, r, maxSmallBody, value)
}

// ReadJSONUpTo is ReadJSON for a body of at most limit bytes.
func ReadJSONUpTo(w http.ResponseWriter, r *http.Request, limit int64, value any) error {
	if err := requireJSON(r); err != nil {
		return err
	}
	body, err := ReadBody(w, r, limit)
	if err != nil {
		return bodyProblem(err)
	}
	if err := json.Unmarshal(body, value, json.RejectUnknownMembers(true)); err != nil {
		return bodyProblem(err)
	}
	return nil
}

func requireJSON(r *http.Request) error {
	contentType, err := OneHeader(r.Header, "Content-Type")
	if err != nil {
		return err
	}
	media, parameters, err := mime.ParseMediaType(contentType)
	charset, given := parameters["charset"]
	if err != nil || media != "application/json" || given && !strings.EqualFold(charset, "utf-8") {
		return Invalid("", "unsupported_media_type", fmt.Sprintf("The Content-Type is %q.", contentType),
			"Send Content-Type: application/json.")
	}
	return nil
}

func bodyProblem(err error) *Problem {
	var tooLarge *http.MaxBytesError
	var wrong *json.SemanticError
	var broken *jsontext.SyntacticError
	switch {
	case errors.As(err, &tooLarge):
		return Invalid("", "body_too_large", fmt.Sprintf("The body is larger than %d bytes.", tooLarge.Limit), "Send a smaller body.")
	case errors.Is(err, jsontext.ErrDuplicateName) && errors.As(err, &broken):
		return Invalid(string(broken.JSONPointer), "duplicate_field", fmt.Sprintf("The name %q is given twice.", broken.JSONPointer.LastToken()),
			"Give each name once.")
	case errors.Is(err, json.ErrUnknownName) && errors.As(err, &wrong):
		return Invalid(string(wrong.JSONPointer), "unknown_field", fmt.Sprintf("The member %q is unknown.", wrong.JSONPointer.LastToken()),
			"Send the documented members only.")
	case errors.As(err, &wrong):
		return Invalid(string(wrong.JSONPointer), CodeInvalidRequest, "The value there is "+kindOf(wrong.JSONKind)+".", "Send "+wanted(wrong.GoType)+".")
	case errors.As(err, &broken):
		return Invalid("", "invalid_json", fmt.Sprintf("The body is not JSON as RFC 8259 has it, near byte %d.", broken.ByteOffset),
			"Send one JSON object in UTF-8 and nothing behind it.")
	}
	return Invalid("", "invalid_json", "The body could not be read.", "Send one JSON object.")
}

// kindOf names the kind of a received value.
func kindOf(kind jsontext.Kind) string {
	switch kind {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string that can't be read so"
	case '0':
		return "a number"
	case '[':
		return "an array"
	}
	return "an object"
}

// wanted names what is expected instead.
func wanted(goType reflect.Type) string {
	for goType != nil && goType.Kind() == reflect.Pointer {
		goType = goType.Elem()
	}
	switch {
	case goType == nil:
		return "what is documented"
	case goType.String() == "time.Time":
		return "a time of RFC 3339 such as 2026-01-31T12:00:00Z"
	case goType.Kind() == reflect.String:
		return "a string"
	case goType.Kind() == reflect.Bool:
		return "true or false"
	case goType.Kind() == reflect.Slice:
		return "an array"
	case goType.Kind() == reflect.Struct, goType.Kind() == reflect.Map:
		return "an object"
	}
	return "a whole number"
}

// OneHeader returns the value of a header that may be there once, "" if
// it is absent. It refuses different values: a proxy before us may have
// taken another one than we do. Name is canonical; no value is shown,
// as it may be a secret.
func OneHeader(header http.Header, name string) (string, error) {
	values := header[name]
	if len(values) == 0 {
		return "", nil
	}
	for _, value := range values[1:] {
		if value != values[0] {
			return "", NewProblem(http.StatusBadRequest, CodeInvalidRequest,
				fmt.Sprintf("The header %s is there %d times, with different values. Send it once.", name, len(values)))
		}
	}
	return values[0], nil
}

// maxIdempotencyKey is the longest Idempotency-Key, in characters.
const maxIdempotencyKey = 255

// IdempotencyKey returns the header Idempotency-Key of a request: "" or
// 1 to 255 printable ASCII characters.
func IdempotencyKey(r *http.Request) (string, error) {
	values, given := r.Header["Idempotency-Key"]
	if !given {
		return "", nil
	}
	key := values[0]
	valid := len(values) == 1 && key != "" && len(key) <= maxIdempotencyKey
	for i := range len(key) {
		valid = valid && key[i] >= ' ' && key[i] <= '~'
	}
	if !valid {
		return "", Invalid("", "invalid_idempotency_key", "The header Idempotency-Key is not valid.",
			"Send one of 1 to 255 printable ASCII characters, such as a UUID.")
	}
	return key, nil
}

// IdempotencyKeyReused returns the 400 for a key that another request has used.
func IdempotencyKeyReused() *Problem {
	return Invalid("", "idempotency_key_reused", "The Idempotency-Key was used for another request.", "Send a new Idempotency-Key with a new request.")
}

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
