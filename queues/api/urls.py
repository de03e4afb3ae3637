"""The addresses of topics, messages and groups, under `/api/v1/`."""

from django.urls import path

from queues.api.auditviews import AuditLogView
from queues.api.bulkviews import (
    BulkCancelView,
    BulkDeliverNowView,
    BulkRescheduleView,
    BulkRestoreView,
)
from queues.api.consumeviews import AckView, LagView, ReceiveView
from queues.api.controlviews import (
    GroupsView,
    OneGroupView,
    OneTopicView,
    PauseView,
    ResetView,
    ResumeView,
    TopicsView,
)
from queues.api.deadletterviews import (
    DeadLettersView,
    OneDeadLetterView,
    PurgeView,
    ReasonsView,
)
from queues.api.docs import OpenApiView
from queues.api.failviews import DeadLetterView, RetryView
from queues.api.leaseviews import ExtendView, LeasesView, ReleaseLeaseView
from queues.api.listviews import MessagesView, OneParkedView, ParkedView, ReleaseView
from queues.api.messageviews import DeliverNowView, OneMessageView, RestoreView
from queues.api.operationviews import AbortView, OneOperationView, OperationsView, UndoView
from queues.api.redriveviews import RedriveView
from queues.api.retryviews import OneRetryView, RetriesView, RetryNowView
from queues.api.sendviews import BatchView, SendView

app_name = "api"

# The busiest first: Django tries them in order.
urlpatterns = [
    path("topics/<str:topic>/messages", SendView.as_view(), name="send"),
    path("topics/<str:topic>/messages/batch", BatchView.as_view(), name="batch"),
    path("groups/<str:group>/receive", ReceiveView.as_view(), name="receive"),
    path("groups/<str:group>/ack", AckView.as_view(), name="ack"),
    path("groups/<str:group>/extend", ExtendView.as_view(), name="extend"),
    path("groups/<str:group>/retry", RetryView.as_view(), name="retry"),
    path("groups/<str:group>/dead-letter", DeadLetterView.as_view(), name="dead-letter"),
    path("groups/<str:group>/release", ReleaseLeaseView.as_view(), name="release-lease"),
    path("messages/<str:message_id>", OneMessageView.as_view(), name="message"),
    path("messages/<str:message_id>/restore", RestoreView.as_view(), name="restore"),
    path("messages/<str:message_id>/deliver-now", DeliverNowView.as_view(), name="deliver-now"),
    path("messages", MessagesView.as_view(), name="messages"),
    path("parked", ParkedView.as_view(), name="parked"),
    path("parked/<str:message_id>", OneParkedView.as_view(), name="one-parked"),
    path("parked/<str:message_id>/release", ReleaseView.as_view(), name="release"),
    path("topics", TopicsView.as_view(), name="topics"),
    path("topics/<str:topic>", OneTopicView.as_view(), name="topic"),
    path("groups", GroupsView.as_view(), name="groups"),
    path("groups/<str:group>", OneGroupView.as_view(), name="group"),
    path("groups/<str:group>/pause", PauseView.as_view(), name="pause"),
    path("groups/<str:group>/resume", ResumeView.as_view(), name="resume"),
    path("groups/<str:group>/reset", ResetView.as_view(), name="reset"),
    path("groups/<str:group>/retries", RetriesView.as_view(), name="retries"),
    path("groups/<str:group>/retries/<str:message_id>", OneRetryView.as_view(), name="one-retry"),
    path(
        "groups/<str:group>/retries/<str:message_id>/deliver-now",
        RetryNowView.as_view(),
        name="retry-now",
    ),
    path("groups/<str:group>/dead-letters", DeadLettersView.as_view(), name="dead-letters"),
    path("groups/<str:group>/dead-letters/redrive", RedriveView.as_view(), name="redrive"),
    path("groups/<str:group>/dead-letters/purge", PurgeView.as_view(), name="purge"),
    path("groups/<str:group>/dead-letters/reasons", ReasonsView.as_view(), name="reasons"),
    path(
        "groups/<str:group>/dead-letters/<str:message_id>",
        OneDeadLetterView.as_view(),
        name="one-dead-letter",
    ),
    path("groups/<str:group>/leases", LeasesView.as_view(), name="leases"),
    path("groups/<str:group>/lag", LagView.as_view(), name="lag"),
    path("bulk/cancel", BulkCancelView.as_view(), name="bulk-cancel"),
    path("bulk/reschedule", BulkRescheduleView.as_view(), name="bulk-reschedule"),
    path("bulk/deliver-now", BulkDeliverNowView.as_view(), name="bulk-deliver-now"),
    path("bulk/restore", BulkRestoreView.as_view(), name="bulk-restore"),
    path("operations", OperationsView.as_view(), name="operations"),
    path("operations/<str:operation_id>", OneOperationView.as_view(), name="operation"),
    path("operations/<str:operation_id>/abort", AbortView.as_view(), name="abort"),
    path("operations/<str:operation_id>/undo", UndoView.as_view(), name="undo"),
    path("audit-log", AuditLogView.as_view(), name="audit-log"),
    path("openapi.json", OpenApiView.as_view(), name="openapi"),
]
