package tenants

// A ReplacedEvent is a type of event that later ones of the same stream
// replace: they set all that the earlier one did, so nothing is lost
// with it once its time is of no interest.
type ReplacedEvent struct {
	Event  Event  // an empty one
	By     int    // how many later ones it takes
	Switch string // member of its data: where it is true, only later ones count in which it is true as well; empty: all count
}

// ReplacedEvents are all types of events that later ones replace.
func ReplacedEvents() (all []ReplacedEvent) {
	for _, event := range []Event{
		OrganizationRenamed{}, ProjectRenamed{}, SecurityPolicySet{},
		APIKeyRenamed{}, APIKeyLimited{}, APIKeyAccessChanged{},
		MemberRoleChanged{}, MemberResetCodeIssued{}, MemberIdentified{},
		PasskeyUsed{}, WebhookChanged{}, WebhookSwitched{},
	} {
		all = append(all, ReplacedEvent{Event: event, By: 1})
	}
	return append(all,
		ReplacedEvent{Event: MemberPasswordChanged{}, By: 1, Switch: "reset"}, // by a code it removes the identity, too
		ReplacedEvent{Event: WebhookRotated{}, By: 2},                         // the secret of before is that of the rotation before
	)
}
