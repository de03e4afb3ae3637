"""The console's addresses, below `/admin/` and before Django's own."""

from django.urls import path

from postdate.console import (
    bulk,
    deadletters,
    failures,
    forecast,
    groups,
    keys,
    messages,
    overview,
    people,
    schedule,
    schedules,
    topics,
    work,
)

__all__ = ["people", "urlpatterns"]

urlpatterns = [
    path("", overview.overview_page, name="overview"),
    path("levels/", schedule.levels_page, name="levels"),
    path("wheel/", schedule.wheel_page, name="wheel"),
    path("loops/", schedule.loops_page, name="loops"),
    path("forecast/", forecast.forecast_page, name="forecast"),
    # Messages
    path("messages/", messages.messages_page, name="messages"),
    path("messages/send/", messages.send_page, name="send"),
    path("messages/bulk/", bulk.bulk_page, name="bulk"),
    path("forecast/spread/", bulk.spread_page, name="spread"),
    path("messages/<slug:message_id>/", messages.message_page, name="message"),
    path("messages/<slug:message_id>/cancel/", messages.cancel_page, name="message-cancel"),
    path("messages/<slug:message_id>/move/", messages.move_page, name="message-move"),
    path(
        "messages/<slug:message_id>/deliver-now/",
        messages.deliver_now_page,
        name="message-deliver-now",
    ),
    path("messages/<slug:message_id>/restore/", messages.restore_page, name="message-restore"),
    path("messages/<slug:message_id>/release/", messages.release_page, name="message-release"),
    path("parked/", messages.parked_page, name="parked"),
    # Topics and groups: names hold almost any character, so they are paths of their own
    path("topics/", topics.topics_page, name="topics"),
    path("new-topic/", topics.topic_add_page, name="topic-add"),
    path("topics/<path:name>/change/", topics.topic_change_page, name="topic-change"),
    path("topics/<path:name>/purge/", topics.topic_purge_page, name="topic-purge"),
    path("topics/<path:name>/delete/", topics.topic_delete_page, name="topic-delete"),
    path("topics/<path:name>/", topics.topic_page, name="topic"),
    path("groups/", groups.groups_page, name="groups"),
    path("new-group/", groups.group_add_page, name="group-add"),
    path("groups/<path:name>/pause/", groups.group_pause_page, name="group-pause"),
    path("groups/<path:name>/change/", groups.group_change_page, name="group-change"),
    path("groups/<path:name>/delete/", groups.group_delete_page, name="group-delete"),
    path("groups/<path:name>/reset/", failures.group_reset_page, name="group-reset"),
    path("groups/<path:name>/retries/", failures.retries_page, name="retries"),
    path(
        "groups/<path:name>/retries/<slug:message_id>/cancel/",
        failures.retry_cancel_page,
        name="retry-cancel",
    ),
    path(
        "groups/<path:name>/retries/<slug:message_id>/now/",
        failures.retry_now_page,
        name="retry-now",
    ),
    path(
        "groups/<path:name>/retries/<slug:message_id>/move/",
        failures.retry_move_page,
        name="retry-move",
    ),
    path("dead-letters/", deadletters.dead_page, name="dead"),
    path("groups/<path:name>/dead-letters/", deadletters.letters_page, name="letters"),
    path("groups/<path:name>/dead-letters/redrive/", deadletters.redrive_page, name="redrive"),
    path(
        "groups/<path:name>/dead-letters/purge/",
        deadletters.letters_purge_page,
        name="letters-purge",
    ),
    path(
        "groups/<path:name>/dead-letters/export/",
        deadletters.letters_export_page,
        name="letters-export",
    ),
    path(
        "groups/<path:name>/dead-letters/<slug:message_id>/",
        deadletters.letter_page,
        name="letter",
    ),
    path(
        "groups/<path:name>/dead-letters/<slug:message_id>/discard/",
        deadletters.letter_discard_page,
        name="letter-discard",
    ),
    path(
        "groups/<path:name>/dead-letters/<slug:message_id>/mend/",
        deadletters.letter_mend_page,
        name="letter-mend",
    ),
    path("groups/<path:name>/", groups.group_page, name="group"),
    # Work and traces
    path("operations/", work.operations_page, name="operations"),
    path("operations/<slug:operation_id>/", work.operation_page, name="operation"),
    path(
        "operations/<slug:operation_id>/abort/", work.operation_abort_page, name="operation-abort"
    ),
    path("operations/<slug:operation_id>/undo/", work.operation_undo_page, name="operation-undo"),
    path("reports/schedules/", schedules.schedules_page, name="schedules"),
    path("reports/schedules/new/", schedules.schedule_add_page, name="schedule-add"),
    path(
        "reports/schedules/<int:schedule_id>/change/",
        schedules.schedule_change_page,
        name="schedule-change",
    ),
    path(
        "reports/schedules/<int:schedule_id>/run/",
        schedules.schedule_run_page,
        name="schedule-run",
    ),
    path(
        "reports/schedules/<int:schedule_id>/delete/",
        schedules.schedule_delete_page,
        name="schedule-delete",
    ),
    path("keys/", keys.keys_page, name="keys"),
    path("keys/new/", keys.key_add_page, name="key-add"),
    path("keys/<int:key_id>/change/", keys.key_change_page, name="key-change"),
    path("keys/<int:key_id>/rotate/", keys.key_rotate_page, name="key-rotate"),
    path("keys/<int:key_id>/revoke/", keys.key_revoke_page, name="key-revoke"),
    path("people/", people.people_page, name="people"),
    path("audit/", work.audit_page, name="audit"),
    path("system/", work.system_page, name="system"),
]
