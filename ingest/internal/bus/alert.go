package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/outbox"
)

// RelayName names the relay's cursor in the outbox. It is stored.
const RelayName = "ingest.facts"

// Outbox is the outbox of weir.alerts.v1.
func Outbox() outbox.Outbox {
	return outbox.Outbox{Topic: contract.TopicAlerts, Source: Source}
}

// SaveNotice puts what is told of an alert into the outbox, in the transaction
// that makes it true.
func SaveNotice(ctx context.Context, tx pgx.Tx, n *ingest.Notice) error {
	body, err := json.Marshal(searchAlert(n))
	if err != nil {
		panic("BUG: cannot encode an event: " + err.Error())
	}
	return outbox.Save(ctx, tx, []outbox.Fact{{
		Organization: n.Search.Organization, ID: fmt.Sprintf("%s/%d/%s", n.Search.ID, n.Number, n.Of.At.UTC().Format(time.RFC3339Nano)), // an alert may be made again
		Type: alertTypes[n.State], At: n.Of.At, Body: body,
	}})
}

var alertTypes = map[ingest.AlertState]string{
	ingest.AlertFiring: contract.TypeSearchAlertFired, ingest.AlertOK: contract.TypeSearchAlertResolved,
	ingest.AlertUnevaluated: contract.TypeSearchAlertUnevaluated,
}

func searchAlert(n *ingest.Notice) contract.SearchAlert {
	fact := contract.SearchAlert{
		Organization: n.Search.Organization, Project: n.Search.Project, Search: n.Search.ID, Name: n.Search.Name, Query: n.Search.Whole(),
		Before: string(n.Before), Condition: "more_than", Threshold: n.Rule.Threshold, Entries: n.Of.Entries, Incomplete: n.Of.Part,
		From: n.From().UTC(), To: n.Of.At.UTC(), Reason: n.Of.Reason, Examples: n.Examples, At: n.Of.At.UTC(), Test: n.Test,
		Addressed: contract.Addressed{
			MailTo: &contract.MailTo{Roles: n.Rule.Roles, Members: n.Rule.Members}, Path: "/console/logs?" + n.Address().Encode(),
		},
	}
	if n.Rule.Fewer {
		fact.Condition = "fewer_than"
	}
	return fact
}
