package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

// maxSmallBody is the largest body of an administrative request, in bytes.
const maxSmallBody = 64 << 10

// ReadJSON decodes a small body (at most 64 KiB) into value. It refuses another content type, unknown members and
// anything after the object with a 400 that says which.
func ReadJSON(w http.ResponseWriter, r *http.Request, value any) error {
	if err := requireJSON(r); err != nil {
		return err
	}
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxSmallBody))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(value); err != nil {
		return bodyProblem(err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return Invalid("", CodeInvalidRequest, "There is something after the JSON object.", "Send exactly one JSON object.")
	}
	return nil
}

func requireJSON(r *http.Request) error {
	contentType := r.Header.Get("Content-Type")
	if media, _, err := mime.ParseMediaType(contentType); err != nil || media != "application/json" {
		return Invalid("", "unsupported_media_type", fmt.Sprintf("The Content-Type is %q.", contentType),
			"Send Content-Type: application/json.")
	}
	return nil
}

func bodyProblem(err error) *Problem {
	var tooLarge *http.MaxBytesError
	var wrongType *json.UnmarshalTypeError
	switch {
	case errors.As(err, &tooLarge):
		return Invalid("", "body_too_large", fmt.Sprintf("The body is larger than %d bytes.", tooLarge.Limit), "Send a smaller body.")
	case errors.As(err, &wrongType):
		return Invalid("/"+wrongType.Field, CodeInvalidRequest, fmt.Sprintf("%q can't be a JSON %s.", wrongType.Field, wrongType.Value),
			fmt.Sprintf("Send a %s.", wrongType.Type))
	}
	return Invalid("", "invalid_json", "The body is not the JSON object that is expected: "+err.Error()+".",
		"Send one JSON object with the documented members.")
}
