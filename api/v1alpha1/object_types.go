package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// ObjectSpec is an object workload: stages in sequence, works in them side by
// side, operations in those by ratio. The instances that one trigger makes share
// its workers and go through the stages together. Stages before the first that
// is measured are carried out before the barrier; that one begins with it.
type ObjectSpec struct {
	// storage is where all works go that do not say otherwise.
	// +required
	Storage ObjectStorage `json:"storage"`
	// stages in their order.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Stages []ObjectStage `json:"stages"`
}

// ObjectStorage is an object store.
//
// +kubebuilder:validation:ExactlyOneOf=s3Spec;swiftSpec;fileSpec;nullSpec;otherSpec
type ObjectStorage struct {
	// s3Spec is a store that speaks S3.
	// +optional
	S3Spec *S3Spec `json:"s3Spec,omitempty"`
	// swiftSpec is OpenStack Swift.
	// +optional
	SwiftSpec *SwiftSpec `json:"swiftSpec,omitempty"`
	// fileSpec has a file for each object, on a volume that the instance makes for
	// itself.
	// +optional
	FileSpec *ObjectFileSpec `json:"fileSpec,omitempty"`
	// nullSpec keeps nothing and answers at once, in the program itself.
	// +optional
	NullSpec *ObjectNullSpec `json:"nullSpec,omitempty"`
	// otherSpec is a store of a kind that has no field of its own, by its settings.
	// +optional
	OtherSpec *ObjectOtherSpec `json:"otherSpec,omitempty"`
	// credentials of s3Spec or swiftSpec; without them, on engine local those of
	// the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY,
	// AWS_SESSION_TOKEN, OS_PASSWORD, OS_AUTH_TOKEN), on kubernetes none.
	// +optional
	Credentials *ObjectCredentials `json:"credentials,omitempty"`
}

// ObjectCredentials say where credentials are: never the credentials themselves.
//
// +kubebuilder:validation:ExactlyOneOf=secretName;file
type ObjectCredentials struct {
	// secretName is a Secret of the run's namespace (kubernetes) with the keys
	// accesskey, secretkey and sessiontoken, or password or token.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
	// file of lines KEY=VALUE with the same keys, which nobody else may read; its
	// absolute path (local).
	// +optional
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:MaxLength=4096
	File string `json:"file,omitempty"`
}

// HTTPEndpoint is how a store that speaks HTTP is trusted and waited for.
type HTTPEndpoint struct {
	// timeout is how long nothing may come.
	// +optional
	Timeout *Duration `json:"timeout,omitempty"`
	// caFile has certificates in PEM to trust: on engine local a file of this
	// machine, on kubernetes one of the pod, where the Secret of the credentials is
	// at /credentials.
	// +optional
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:MaxLength=4096
	CAFile string `json:"caFile,omitempty"`
	// insecureSkipVerify trusts any certificate.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
	// proxy is an HTTP proxy for all requests, as http://HOST:PORT.
	// Those of an https endpoint go through a tunnel that it makes.
	// +optional
	// +kubebuilder:validation:Pattern=`^http://[^ /@]+:[0-9]+$`
	// +kubebuilder:validation:MaxLength=2048
	Proxy string `json:"proxy,omitempty"`
}

// S3Spec is a store that speaks S3.
type S3Spec struct {
	// endpoint is its address.
	// +required
	// +kubebuilder:validation:Pattern=`^https?://[^ ]+$`
	// +kubebuilder:validation:MaxLength=2048
	Endpoint string `json:"endpoint"`
	// region that requests are signed for.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Region string `json:"region,omitempty"`
	// addressing says where buckets stand: in the path, or before the endpoint's
	// name in the name of the host (virtualHost). Either way connections go to the
	// endpoint's own address, and its certificate is that of the endpoint.
	// +optional
	// +kubebuilder:validation:Enum=path;virtualHost
	Addressing string `json:"addressing,omitempty"`
	// signature is v4 or v2.
	// +optional
	// +kubebuilder:validation:Enum=v4;v2
	Signature string `json:"signature,omitempty"`
	// payload says whether bodies are signed too.
	// +optional
	// +kubebuilder:validation:Enum=unsigned;signed
	Payload      string `json:"payload,omitempty"`
	HTTPEndpoint `json:",inline"`
}

// SwiftSpec is OpenStack Swift.
//
// +kubebuilder:validation:XValidation:rule="has(self.authURL) || has(self.storageURL)",message="give authURL, or storageURL with a token among the credentials"
// +kubebuilder:validation:XValidation:rule="has(self.authURL) == has(self.username)",message="authURL and username belong together"
// +kubebuilder:validation:XValidation:rule="has(self.authURL) || self.auth == 'tempauth' && !has(self.project) && !has(self.userDomain) && !has(self.projectDomain) && !has(self.region) && !has(self.interface)",message="auth, project, userDomain, projectDomain, region and interface are for an authURL"
type SwiftSpec struct {
	// authURL is where tokens are had: of TempAuth (v1), or of Keystone. Without it
	// nobody is asked: the credentials have the token itself, which is not renewed.
	// +optional
	// +kubebuilder:validation:Pattern=`^https?://[^ ]+$`
	// +kubebuilder:validation:MaxLength=2048
	AuthURL string `json:"authURL,omitempty"`
	// storageURL is the account, such as http://HOST:PORT/v1/AUTH_NAME; beside
	// authURL it is in place of what that says.
	// +optional
	// +kubebuilder:validation:Pattern=`^https?://[^ ]+$`
	// +kubebuilder:validation:MaxLength=2048
	StorageURL string `json:"storageURL,omitempty"`
	// auth is the kind of authentication; keystone finds its version by authURL.
	// +optional
	// +kubebuilder:validation:Enum=tempauth;keystone;keystonev2;keystonev3
	// +kubebuilder:default=tempauth
	Auth string `json:"auth,omitempty"`
	// username to authenticate as.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Username string `json:"username,omitempty"`
	// project of the user (keystone).
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Project string `json:"project,omitempty"`
	// userDomain of the user (keystonev3).
	// +optional
	// +kubebuilder:validation:MaxLength=256
	UserDomain string `json:"userDomain,omitempty"`
	// projectDomain of the project (keystonev3).
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ProjectDomain string `json:"projectDomain,omitempty"`
	// region of the store (keystone).
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Region string `json:"region,omitempty"`
	// interface of the store (keystone): public, internal or admin.
	// +optional
	// +kubebuilder:validation:Enum=public;internal;admin
	Interface string `json:"interface,omitempty"`
	// policy of containers that are made.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Policy       string `json:"policy,omitempty"`
	HTTPEndpoint `json:",inline"`
}

// ObjectFileSpec has a file for each object.
type ObjectFileSpec struct {
	// storageClass of the volume; without it, the platform's default.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	StorageClass string `json:"storageClass,omitempty"`
	// size of the volume.
	// +optional
	// +kubebuilder:default="1Gi"
	Size *resource.Quantity `json:"size,omitempty"`
	// sync says whether files are on the volume before a write has ended.
	// +optional
	// +kubebuilder:validation:Enum=none;data
	Sync string `json:"sync,omitempty"`
}

// ObjectNullSpec keeps nothing.
type ObjectNullSpec struct {
	// size of every object that is read.
	// +optional
	// +kubebuilder:default="4Ki"
	Size *resource.Quantity `json:"size,omitempty"`
}

// ObjectOtherSpec is a store of a kind that has no field of its own.
type ObjectOtherSpec struct {
	// type of storage.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Type string `json:"type"`
	// settings of that type, without credentials.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Settings map[string]string `json:"settings,omitempty"`
}

// ObjectStage does its works side by side and ends when all have.
type ObjectStage struct {
	// name of the stage.
	// +required
	Name Name `json:"name"`
	// closureDelay is how long nothing is done after the works have ended.
	// +optional
	ClosureDelay *Duration `json:"closureDelay,omitempty"`
	// works of the stage; none: nothing is done until the closure delay is over.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Works []ObjectWork `json:"works,omitempty"`
}

// ObjectWork is what a number of workers do at the same time. Works that are not
// normal go once through all that their selectors cover: init makes containers,
// prepare writes objects, cleanup deletes them, dispose removes containers.
type ObjectWork struct {
	// type of the work.
	// +optional
	// +kubebuilder:validation:Enum=normal;init;prepare;cleanup;dispose
	// +kubebuilder:default=normal
	Type string `json:"type,omitempty"`
	// name of the work; without it, its type.
	// +optional
	Name Name `json:"name,omitempty"`
	// workers of all instances together.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Workers int32 `json:"workers"`
	// interval is how long a slice of the histograms is.
	// +optional
	// +kubebuilder:default="5s"
	Interval *Duration `json:"interval,omitempty"`
	// rampUp is how long operations go on before they are measured.
	// +optional
	RampUp *Duration `json:"rampUp,omitempty"`
	// runtime is how long they are measured.
	// +optional
	Runtime *Duration `json:"runtime,omitempty"`
	// rampDown is how long they go on after that.
	// +optional
	RampDown *Duration `json:"rampDown,omitempty"`
	// totalOps ends the work when so many operations have begun, by all workers.
	// +optional
	// +kubebuilder:validation:Minimum=1
	TotalOps *int64 `json:"totalOps,omitempty"`
	// totalBytes ends the work when so much was moved, by all workers.
	// +optional
	TotalBytes *resource.Quantity `json:"totalBytes,omitempty"`
	// maxFailuresPerMillion operations are accepted; more fail the instance. 200000
	// unless given, of works that are not normal 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	MaxFailuresPerMillion *int32 `json:"maxFailuresPerMillion,omitempty"`
	// rate makes the loop open: operations are due by a schedule, as
	// poisson(500), constant(500) (a second) or burst(SIZE,INTERVAL), whatever
	// became of those before; workers is how many may be under way.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Rate string `json:"rate,omitempty"`
	// storage of this work.
	// +optional
	Storage *ObjectStorage `json:"storage,omitempty"`
	// operations of a normal work.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Operations   []ObjectOperation `json:"operations,omitempty"`
	ObjectTarget `json:",inline"`
}

// ObjectOperation is one of a work's mix.
type ObjectOperation struct {
	// type of the operation.
	// +required
	// +kubebuilder:validation:Enum=read;write;multipart;filewrite;head;list;delete;copy
	Type string `json:"type"`
	// name of the operation in metrics and tables; without it, its type, and a
	// number behind it where several are of that type.
	// +optional
	Name Name `json:"name,omitempty"`
	// ratio is how many of a hundred operations it is. Those of a work add up to
	// 100.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=100
	Ratio        *int32 `json:"ratio,omitempty"`
	ObjectTarget `json:",inline"`
	// verify checks every byte that is read.
	// +optional
	Verify bool `json:"verify,omitempty"`
	// length reads a part of so many bytes, at a multiple of 4Ki.
	// +optional
	Length *resource.Quantity `json:"length,omitempty"`
	// within is how long the objects are of which a part is read.
	// +optional
	Within *resource.Quantity `json:"within,omitempty"`
	// files is a directory whose files a filewrite sends: on engine local one of
	// this machine, on kubernetes one of the pod.
	// +optional
	// +kubebuilder:validation:Pattern=`^/`
	// +kubebuilder:validation:MaxLength=4096
	Files string `json:"files,omitempty"`
	// fileSelection says how it chooses one.
	// +optional
	// +kubebuilder:validation:Enum=random;inOrder
	FileSelection string `json:"fileSelection,omitempty"`
	// maxKeys bounds the answer of a list.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	MaxKeys *int32 `json:"maxKeys,omitempty"`
	// copyPrefix stands before the object's name in that of its copy.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	CopyPrefix string `json:"copyPrefix,omitempty"`
}

// ObjectTarget is which containers and objects operations take, and what they
// write.
type ObjectTarget struct {
	// containers selects numbers from 1: c(n), u(a,b), r(a,b), s(a,b),
	// h(lo|hi|weight,…), zipf(a,b,exponent) or hot(a,b,keys%,draws%).
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Containers string `json:"containers,omitempty"`
	// objects selects numbers likewise.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Objects string `json:"objects,omitempty"`
	// sizes selects sizes, with a unit behind: c(64)KB, u(1,8)MiB.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Sizes string `json:"sizes,omitempty"`
	// division is what is divided among the workers.
	// +optional
	// +kubebuilder:validation:Enum=none;container;object
	Division string `json:"division,omitempty"`
	// containerPrefix stands before a container's number.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:default=mycontainers
	ContainerPrefix string `json:"containerPrefix,omitempty"`
	// containerSuffix stands after it.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ContainerSuffix string `json:"containerSuffix,omitempty"`
	// objectPrefix stands before an object's number (myobjects); of a list, it is
	// the prefix that is asked for.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ObjectPrefix *string `json:"objectPrefix,omitempty"`
	// objectSuffix stands after it.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ObjectSuffix string `json:"objectSuffix,omitempty"`
	// content of what is written.
	// +optional
	// +kubebuilder:validation:Enum=random;zero
	Content string `json:"content,omitempty"`
	// chunked sends bodies in chunks of HTTP (swift).
	// +optional
	Chunked bool `json:"chunked,omitempty"`
	// partSize of a multipart write.
	// +optional
	PartSize *resource.Quantity `json:"partSize,omitempty"`
	// checks are made after each operation that succeeded.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:Enum=readAfterWrite;listAfterWrite;readAfterDelete;listAfterDelete
	Checks []string `json:"checks,omitempty"`
	// checkWithin is how long a store that was seen inconsistent is asked again.
	// +optional
	CheckWithin *Duration `json:"checkWithin,omitempty"`
}
