package v1alpha1

// MaintenanceWindow opens on some weekdays of one time zone. Times are wall-clock times of
// that zone. An end before the start lies on the next day, and such a window belongs to the
// weekday on which it starts.
// ---
// It implements §3.1. The form of each field is judged here; which instants follow from it
// is for package window.
//
// +kubebuilder:validation:XValidation:rule="self.start != self.end",messageExpression="'start and end are both ' + self.start + ': for the whole day write start: \"00:00\" and end: \"24:00\", otherwise move one of them'",message="start and end are equal: for the whole day write 00:00 and 24:00"
type MaintenanceWindow struct {
	// timezone is a name of the IANA time zone database, such as Asia/Tokyo or UTC. Offsets
	// and abbreviations such as JST+9 are not names.
	// ---
	// Only the last part of the rule knows whether there is such a zone, and it fails where there is
	// none. CEL has nothing to catch a failure with, so that the API server shows the type in the place
	// of the value: "string": unknown time zone Asia/Tokio evaluating rule: write a name ... A list of
	// names in the rule would refuse what a newer database has. tasuki plan shows the value.
	//
	// +required
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9-]*(/[A-Za-z0-9_+/-]+)?$') && self != 'Local' && timestamp('2000-01-01T00:00:00Z').getHours(self) >= 0",message="write a name of the IANA time zone database, such as Asia/Tokyo, UTC or Etc/GMT+9"
	Timezone string `json:"timezone"`

	// days are the weekdays on which the window starts: Mon, Tue, Wed, Thu, Fri, Sat, Sun.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MaxItems=7
	// +kubebuilder:validation:XValidation:rule="self.size() > 0",message="write at least one of Mon, Tue, Wed, Thu, Fri, Sat, Sun"
	Days []Weekday `json:"days"`

	// start is HH:MM from 00:00 to 23:59.
	//
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([01][0-9]|2[0-3]):[0-5][0-9]$')",message="write HH:MM from 00:00 to 23:59"
	Start string `json:"start"`

	// end is HH:MM from 00:00 to 24:00. Before start it lies on the next day.
	//
	// +required
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$')",message="write HH:MM from 00:00 to 24:00"
	End string `json:"end"`
}

// Weekday is one of Mon, Tue, Wed, Thu, Fri, Sat, Sun.
//
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self in ['Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun']",message="write one of Mon, Tue, Wed, Thu, Fri, Sat, Sun"
type Weekday string
