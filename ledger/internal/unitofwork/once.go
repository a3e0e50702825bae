package unitofwork

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/postgres"
)

// once is a request that has an effect once.
type once struct {
	organization string
	key, input   []byte // hashes; nil: every request is a new one
}

func newOnce(organization string, request Request, input any) (once, error) {
	if request.IdempotencyKey == "" {
		return once{}, nil
	}
	text, err := json.Marshal(input)
	if err != nil {
		return once{}, err
	}
	key, hash := sha256.Sum256([]byte(request.IdempotencyKey)), sha256.Sum256(append([]byte(nameOf(input)), text...))
	return once{organization: organization, key: key[:], input: hash[:]}, nil
}

// An Input names itself in the hash of a request, where the name of its type has changed since requests were kept.
type Input interface{ InputName() string }

func nameOf(input any) string {
	if named, ok := input.(Input); ok {
		return named.InputName()
	}
	return fmt.Sprintf("%T", input)
}

// load reads what was answered before.
func (o once) load(ctx context.Context, tx pgx.Tx, answer any) (known bool, err error) {
	if o.key == nil {
		return false, nil
	}
	text, err := postgres.LoadAnswer(ctx, tx, o.organization, o.key, o.input)
	if err != nil || text == nil {
		return false, err
	}
	return true, json.Unmarshal(text, answer)
}

func (o once) save(ctx context.Context, tx pgx.Tx, answer any, at time.Time) error {
	if o.key == nil {
		return nil
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return postgres.SaveAnswer(ctx, tx, o.organization, o.key, o.input, text, at)
}
