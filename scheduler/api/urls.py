"""The addresses of the schedule, under `/api/v1/`."""

from django.urls import path

from scheduler.api.forecastviews import ForecastView
from scheduler.api.views import DelayLevelsView, LoopsView, TimerWheelView

app_name = "scheduler_api"

urlpatterns = [
    path("delay-levels", DelayLevelsView.as_view(), name="delay-levels"),
    path("timer-wheel", TimerWheelView.as_view(), name="timer-wheel"),
    path("forecast", ForecastView.as_view(), name="forecast"),
    path("loops", LoopsView.as_view(), name="loops"),
]
