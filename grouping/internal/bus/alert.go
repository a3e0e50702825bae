package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/outbox"
)

// errorsPath is the list of groups in the console.
const errorsPath = "/console/errors"

// SaveMessages puts messages of alerts into the outbox.
func SaveMessages(ctx context.Context, tx pgx.Tx, messages []postgres.Message) error {
	facts := make([]outbox.Fact, len(messages))
	for i := range messages {
		m := &messages[i]
		body, err := json.Marshal(errorAlert(m))
		if err != nil {
			panic("BUG: cannot encode an event: " + err.Error())
		}
		// Its time and not its number, which would be given again after a restore.
		facts[i] = outbox.Fact{Organization: m.Alert.Organization, ID: fmt.Sprintf("%s/%d", m.Alert.ID, m.At.UnixMicro()),
			Type: contract.TypeErrorAlertFired, At: m.At, Body: body}
	}
	return outbox.Save(ctx, tx, facts)
}

func errorAlert(m *postgres.Message) contract.ErrorAlert {
	fact := contract.ErrorAlert{
		Organization: m.Alert.Organization, Project: m.Alert.Project, Alert: m.Alert.ID, Name: m.Alert.Name, Groups: []contract.AlertedGroup{},
		More: m.More, At: m.At, Test: m.Test,
		Addressed: contract.Addressed{
			MailTo:   &contract.MailTo{Roles: m.Alert.Roles, Members: m.Alert.Members},
			Webhooks: m.Alert.Webhooks, OnlyWebhooks: len(m.Alert.Webhooks) > 0,
			Path: errorsPath + "?" + url.Values{"project": {m.Alert.Project}}.Encode(),
		},
	}
	for _, g := range m.Groups {
		fact.Groups = append(fact.Groups, contract.AlertedGroup{
			Group: g.ID, Title: g.Title, Type: g.Type, Culprit: g.Culprit, Count: g.Count, Environment: g.Environment, Trigger: string(g.Trigger),
			Cause: g.Cause, Path: errorsPath + "/" + g.ID,
		})
	}
	if len(m.Groups) == 1 && m.More == 0 {
		fact.Path = fact.Groups[0].Path
	}
	return fact
}
