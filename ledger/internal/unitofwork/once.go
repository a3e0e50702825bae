package unitofwork

import (
	"encoding/json"
	"fmt"

	"github.com/weirlog/weir/shared/idempotency"
)

// once identifies a request and its input, so that it applies once.
func once(organization string, request Request, input any) (idempotency.Request, error) {
	text, err := json.Marshal(input)
	return idempotency.NewRequest("answers", organization, request.IdempotencyKey, append([]byte(nameOf(input)), text...)), err
}

// An Input keeps its first type name in the hash of a request.
type Input interface{ InputName() string }

func nameOf(input any) string {
	if named, ok := input.(Input); ok {
		return named.InputName()
	}
	return fmt.Sprintf("%T", input)
}
