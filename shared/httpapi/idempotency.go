package httpapi

import "net/http"

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
