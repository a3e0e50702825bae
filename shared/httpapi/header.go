package httpapi

import (
	"fmt"
	"net/http"
)

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
